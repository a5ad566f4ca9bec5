from ..aot.quantization_errors import debug_quantization
from ..ops.quantization import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from ..ops.quantization import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from ..ops.quantization import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel

debug = debug_quantization
