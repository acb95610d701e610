"""Plans selections: the true elements of a condition as bits, then what they select, once their number is known."""

from .count import Bits as Bits
from .count import add_count as add_count
from .place import add_elements as add_elements
from .place import add_indices as add_indices
from .rows import add_rows as add_rows
