from . import objects as objects
from . import schema as schema
from . import versions as versions
from .constants import pack_strings as pack_strings
from .constants import unpack_strings as unpack_strings
from .model import Model as Model
from .verify import findings as findings
