from .definition import FAMILIES as FAMILIES
from .definition import LiteOperator as LiteOperator
from .definition import family_of as family_of
from .definition import get as get
from .definition import list_names as list_names
from .definition import lite_operator as lite_operator
from .definition import operators as operators
