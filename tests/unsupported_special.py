"""Public functions of scipy.special that Retrograde refuses when they are given a traced value, and why."""

from __future__ import annotations


def _all(names: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


UNSUPPORTED_SPECIAL: dict[str, str] = {
    **_all("geterr seterr", "configures SciPy's error handling"),
    **_all(
        "ai_zeros bei_zeros beip_zeros ber_zeros berp_zeros bi_zeros erf_zeros fresnel_zeros fresnelc_zeros"
        " fresnels_zeros jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros kei_zeros keip_zeros kelvin_zeros ker_zeros"
        " kerp_zeros y0_zeros y1_zeros y1p_zeros yn_zeros ynp_zeros bernoulli euler stirling2",
        "takes integers: nothing to differentiate",
    ),
    **_all("btdtr btdtri", "outdated, and gone since SciPy 1.17: betainc, betaincinv"),
    **_all("factorial2 factorialk", "counts in integers: gamma is the function of real numbers"),
    **_all(
        "legendre chebyt chebyu chebyc chebys jacobi laguerre genlaguerre hermite hermitenorm gegenbauer sh_legendre"
        " sh_chebyt sh_chebyu sh_jacobi",
        "makes a polynomial object of a degree: the eval_* functions are differentiable",
    ),
    **_all(
        "roots_legendre roots_chebyt roots_chebyu roots_chebyc roots_chebys roots_jacobi roots_laguerre"
        " roots_genlaguerre roots_hermite roots_hermitenorm roots_gegenbauer roots_sh_legendre roots_sh_chebyt"
        " roots_sh_chebyu roots_sh_jacobi p_roots t_roots u_roots c_roots s_roots j_roots l_roots la_roots h_roots"
        " he_roots cg_roots ps_roots ts_roots us_roots js_roots",
        "finds the nodes of a quadrature: nothing to differentiate but the parameters, not written yet",
    ),
    **_all(
        "lmbda lqmn lqn lpmn lpn clpmn mathieu_even_coef mathieu_odd_coef obl_cv_seq pro_cv_seq pbdn_seq pbdv_seq"
        " pbvv_seq riccati_jn riccati_yn",
        "computes a sequence up to an order, of one number: the function of one order is differentiable",
    ),
    **_all(
        "assoc_legendre_p_all sph_legendre_p_all sph_harm_y_all",
        "not written yet: the function of one degree and order is differentiable",
    ),
    **_all("ellip_harm ellip_harm_2 ellip_normal", "not written yet: Lamé functions, polynomials of a solved root"),
}
