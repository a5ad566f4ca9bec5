"""`keras.datasets`: small data sets under Keras's names, read from files of this machine.

Lives here: the modules.

    mnist.py fashion_mnist.py cifar10.py cifar100.py    pictures
    imdb.py reuters.py    texts as numbers of words; word_numbers.py: their common part
    boston_housing.py california_housing.py    tables; tables.py: their common part
    restricted_pickle.py    arrays and dictionaries from pickles, without running code

Nothing is loaded from a network: a file must be in Keras's folder, ~/.keras/datasets (KERAS_HOME), where Keras and
TensorFlow put it, or be given by `path`; otherwise FileNotFoundError says where it was looked for.
"""

from . import boston_housing, california_housing, cifar10, cifar100, fashion_mnist, imdb, mnist, reuters

__all__ = ["boston_housing", "california_housing", "cifar10", "cifar100", "fashion_mnist", "imdb", "mnist", "reuters"]
