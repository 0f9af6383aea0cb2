"""The workloads of the GradBench suite, as a user writes them, each with its derivative by hand and in JAX.

A workload is a module with

`program`       plain Python and NumPy, in the subset that numba compiles
`inputs(size)`  its arguments, for a size of `SIZES` (the first is tiny: tests run it without a compiler)
`WRT`           the positions of the arguments that it is differentiated in
`by_hand`       the derivative as one writes it with pencil, paper and numba
`in_cpp()`      the same in C++ (`cpp/`), as a function of the same arguments
`in_jax()`      the same derivative by JAX, as a function of the same arguments, compiled
`in_torch()`    the same by PyTorch, and
`in_autograd()` by autograd, of the program written in whole arrays where that can be done

What the programs compute is described by the suite (https://github.com/gradbench/gradbench, evals/*/README.md).
"""
