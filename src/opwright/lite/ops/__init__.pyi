from .definition import LiteOperator as LiteOperator
from .definition import lite_operator as lite_operator
from .families import FAMILIES as FAMILIES
from .families import family_of as family_of
from .families import get as get
from .families import list_names as list_names
from .families import operators as operators
