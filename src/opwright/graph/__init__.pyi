from .builder import GraphBuilder as GraphBuilder
from .builder import GraphRewriter as GraphRewriter
from .ir import Graph as Graph
from .ir import Node as Node
from .ir import Value as Value
from .ir import same as same
from .parser import parse as parse
from .printer import text as text
