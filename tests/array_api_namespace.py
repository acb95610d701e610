"""A whole array API namespace: gpuops' functions where it has them, another library's elsewhere.

The public test-suite also makes arrays and looks at results with the namespace that it tests. Its tests of gpuops'
functions run so, in bash, with ``GPUOPS`` the path of gpuops' clone::

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    cd array-api-tests
    pip install -r requirements.txt
    export PYTHONPATH=$GPUOPS ARRAY_API_TESTS_MODULE=tests.array_api_namespace ARRAY_API_TESTS_VERSION=2024.12
    pytest --disable-deadline \
        array_api_tests/test_statistical_functions.py::test_{sum,prod,max,min,mean,std,var} \
        array_api_tests/test_statistical_functions.py::test_cumulative_{sum,prod} \
        array_api_tests/test_utility_functions.py::test_{any,all} \
        array_api_tests/test_searching_functions.py::test_{argmax,argmin,count_nonzero,where} \
        array_api_tests/test_data_type_functions.py::test_broadcast_to \
        array_api_tests/test_linalg.py::test_matmul \
        array_api_tests/test_signatures.py::test_func_signature[{sum,prod,max,min,mean,std,var,any,all}] \
        array_api_tests/test_signatures.py::test_func_signature[{argmax,argmin,count_nonzero}] \
        array_api_tests/test_signatures.py::test_func_signature[{where,broadcast_to,matmul}] \
        array_api_tests/test_signatures.py::test_func_signature[cumulative_{sum,prod}] \
        array_api_tests/test_special_cases.py::test_empty_arrays[{sum,prod,mean}] \
        array_api_tests/test_special_cases.py::test_nan_propagation[{sum,prod,max,min,mean}]

On a GPU, with the package array-api-compat, ``GPUOPS_TEST_LIBRARY=array_api_compat.cupy`` makes the arrays CuPy's.
"""

import os
from importlib import import_module

from gpuops.array_api import *  # noqa: F403

library = import_module(os.environ.get("GPUOPS_TEST_LIBRARY", "numpy"))


def __getattr__(name):
    """Names that gpuops lacks come from the other library."""
    return getattr(library, name)
