from .executors import executor as executor
