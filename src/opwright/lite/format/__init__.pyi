from . import objects as objects
from . import schema as schema
from . import versions as versions
from .model import Model as Model
from .strings import pack_strings as pack_strings
from .strings import unpack_strings as unpack_strings
from .verify import findings as findings
