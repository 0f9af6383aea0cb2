"""Functions of other packages, run as they are: what is differentiated, at which point, and what comes of it.

`tests/test_other_peoples_code.py` runs them, and writes the table of `docs/other-peoples-code.md`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

X = np.array([0.5, -1.2, 2.0, 0.3])
P = np.abs(X) + 0.5
Y = np.array([1.0, 0.5, -0.5, 2.0])
L = X[:2]
A = np.random.default_rng(0).normal(size=(6, 2))
LABELS = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
COUNTS = np.arange(6.0)
DESIGN = np.column_stack([np.ones(6), A])
BETA = np.array([0.1, -0.2, 0.3])
PROBABILITIES = np.array([0.2, 0.7, 0.6, 0.4])


class Case(NamedTuple):
    """A function of somebody else's, in a real scalar function of `x`."""

    name: str
    f: Callable[[Any], Any]
    x: Any
    # Why it is refused; empty where the derivative is right.
    refused: str = ""
    # What to take differences of, where f itself is not exact enough.
    like: Callable[[Any], Any] | None = None


COMPILED = "compiled"
FLOAT = "makes a Python float of its result"


class Package(NamedTuple):
    """What is taken from one package."""

    title: str
    module: str
    cases: Callable[[], Iterator[Case]]


def numpy_cases() -> Iterator[Case]:
    from numpy.polynomial import chebyshev, hermite_e, laguerre, legendre, polynomial
    from numpy.polynomial.chebyshev import Chebyshev
    from numpy.polynomial.polynomial import Polynomial

    name = "numpy.polynomial.{}".format
    yield Case(name("polynomial.polyval"), lambda c: polynomial.polyval(1.3, c) + np.sum(polynomial.polyval(c, Y)), X)
    yield Case(
        name("polynomial.polyadd, polymul"), lambda c: np.sum(polynomial.polymul(polynomial.polyadd(c, Y), c)), X
    )
    yield Case(name("polynomial.polydiv"), lambda c: np.sum(polynomial.polydiv(c, np.array([1.0, 2.0]))[0]), X)
    yield Case(name("polynomial.polyder, polyint"), lambda c: np.sum(polynomial.polyint(polynomial.polyder(c)) ** 2), X)
    yield Case(name("polynomial.polyroots"), lambda c: np.sum(np.abs(polynomial.polyroots(c))), X)
    yield Case(name("polynomial.polyfromroots"), lambda r: np.sum(polynomial.polyfromroots(r)), X)
    yield Case(name("polynomial.polyfit"), lambda y: polynomial.polyfit(np.arange(4.0), y, 1) @ L, X)
    yield Case(name("Polynomial.deriv"), lambda c: Polynomial(c)(0.5) * Polynomial(c).deriv()(0.2), X)
    yield Case(name("Chebyshev.fit"), lambda y: Chebyshev.fit(np.arange(4.0), y, 2)(1.5), X)
    yield Case(name("chebyshev.chebval, chebder"), lambda c: chebyshev.chebval(0.3, chebyshev.chebder(c)), X)
    yield Case(name("chebyshev.cheb2poly"), lambda c: np.sum(chebyshev.cheb2poly(c)), X)
    yield Case(name("legendre.legval2d"), lambda c: legendre.legval2d(0.1, 0.2, c.reshape(2, 2)), X)
    yield Case(name("hermite_e.hermeval"), lambda c: hermite_e.hermeval(0.4, c), X)
    yield Case(name("laguerre.lagfit"), lambda y: np.sum(laguerre.lagfit(np.arange(4.0), y, 2)), X)


def optimize_cases() -> Iterator[Case]:
    import scipy.optimize as so

    name = "scipy.optimize.{}".format
    yield Case(name("rosen"), so.rosen, X)
    yield Case(name("rosen_der"), lambda x: so.rosen_der(x) @ Y, X)
    yield Case(name("rosen_hess"), lambda x: np.sum(so.rosen_hess(x) @ Y), X)
    yield Case(name("rosen_hess_prod"), lambda x: np.sum(so.rosen_hess_prod(x, Y)), X)
    yield Case(name("approx_fprime"), lambda x: so.approx_fprime(x, so.rosen, 1e-3) @ Y, X)
    yield Case(name("newton (secant)"), lambda x: so.newton(lambda t: t**3 - x[2] * t - x[0], 2.0, tol=1e-14), X)

    def lowest(x: Any) -> Any:
        return so.minimize(
            lambda t: np.sum((t - x) ** 2 + t**4), np.ones(4), jac=lambda t: 2 * (t - x) + 4 * t**3, tol=1e-12
        ).x

    def exactly(x: Any) -> Any:  # 4 t³ + 2 t = 2 x, by Cardano's formula
        root = np.sqrt(x**2 / 16 + 1 / 216)
        return np.cbrt(x / 4 + root) + np.cbrt(x / 4 - root)

    yield Case(name("minimize (BFGS)"), lambda x: lowest(x) @ Y, X, like=lambda x: exactly(x) @ Y)
    yield Case(
        name("minimize (L-BFGS-B)"),
        lambda x: so.minimize(lambda t: np.sum((t - x) ** 2), np.ones(4), method="L-BFGS-B").x @ Y,
        X,
        COMPILED,
    )
    yield Case(name("least_squares"), lambda x: so.least_squares(lambda t: t - x, np.zeros(4)).x @ Y, X, COMPILED)


def stats_cases() -> Iterator[Case]:
    import scipy.stats as ss

    name = "scipy.stats.{}".format
    yield Case(name("norm.logpdf, of x"), lambda x: np.sum(ss.norm.logpdf(x)), X)
    yield Case(
        name("norm.logpdf, of loc and scale"), lambda p: np.sum(ss.norm.logpdf(X, p[0], p[1])), np.array([0.2, 1.3])
    )
    yield Case(name("norm.nnlf"), lambda p: ss.norm.nnlf(p, X), np.array([0.2, 1.3]))
    yield Case(name("norm.cdf"), lambda x: np.sum(ss.norm.cdf(x) ** 2), X)
    yield Case(name("t.logpdf"), lambda p: np.sum(ss.t.logpdf(X, p[0], loc=p[1])), np.array([3.0, 0.1]))
    yield Case(name("gamma.logpdf"), lambda p: np.sum(ss.gamma.logpdf(P, p[0], scale=p[1])), np.array([2.0, 1.3]))
    yield Case(name("poisson.logpmf"), lambda mu: np.sum(ss.poisson.logpmf([1, 2, 3], mu)), 2.5)
    yield Case(name("multivariate_normal.logpdf, of x"), lambda x: ss.multivariate_normal.logpdf(x, Y, np.eye(4)), X)
    yield Case(
        name("multivariate_normal.logpdf, of the mean"),
        lambda m: np.sum(ss.multivariate_normal.logpdf(A, m, np.eye(2))),
        L,
    )
    yield Case(name("dirichlet.logpdf"), lambda a: ss.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), a), P[:3])
    yield Case(name("entropy"), lambda x: ss.entropy(x) + ss.entropy(x, P[::-1]), P)
    yield Case(name("differential_entropy"), ss.differential_entropy, np.append(X, [0.9, 1.5]))
    yield Case(name("zscore"), lambda x: ss.zscore(x) @ Y, X)
    for of in (ss.skew, ss.kurtosis, ss.sem, ss.iqr, ss.tvar, ss.median_abs_deviation):
        yield Case(name(of.__name__), of, np.append(X, 0.9))
    for of in (ss.gmean, ss.hmean, ss.variation, ss.circmean, ss.circvar):
        yield Case(name(of.__name__), of, P)
    yield Case(name("pmean"), lambda x: ss.pmean(x, 3), P)
    yield Case(name("moment"), lambda x: ss.moment(x, 3), X)
    yield Case(name("lmoment"), lambda x: ss.lmoment(x, order=2), X)
    yield Case(name("describe"), lambda x: ss.describe(x).skewness, X)
    yield Case(name("tmean"), lambda x: ss.tmean(x, (-1, 5)), X)
    yield Case(name("trim_mean"), lambda x: ss.trim_mean(x, 0.25), X)
    yield Case(name("sigmaclip"), lambda x: np.sum(ss.sigmaclip(x)[0] ** 2), X)
    yield Case(name("rankdata"), lambda x: ss.rankdata(x) @ x, X)
    yield Case(name("pearsonr"), lambda x: ss.pearsonr(x, Y).statistic, X)
    yield Case(name("linregress"), lambda x: ss.linregress(Y, x).slope, X)
    yield Case(name("theilslopes"), lambda x: ss.theilslopes(x, Y)[0], X)
    yield Case(name("ttest_ind"), lambda x: ss.ttest_ind(x, Y).statistic, X)
    yield Case(name("ttest_1samp"), lambda x: ss.ttest_1samp(x, 0.1).statistic, X)
    yield Case(name("f_oneway"), lambda x: ss.f_oneway(x, Y).statistic, X)
    yield Case(name("chisquare"), lambda x: ss.chisquare(x).statistic, P)
    yield Case(name("power_divergence"), lambda x: ss.power_divergence(x, x.mean(), lambda_=2 / 3).statistic, P)
    yield Case(name("boxcox"), lambda x: ss.boxcox(x, 0.5) @ Y, P)
    yield Case(name("boxcox_llf"), lambda lmb: ss.boxcox_llf(lmb, P), 0.5)
    yield Case(name("yeojohnson_llf"), lambda lmb: ss.yeojohnson_llf(lmb, X), 0.5)
    yield Case(name("gaussian_kde"), lambda x: np.sum(ss.gaussian_kde(x)(np.array([0.0, 1.0]))), X, COMPILED)
    yield Case(
        name("wasserstein_distance"), lambda x: ss.wasserstein_distance(x, Y), X, "gives x to a method of a plain array"
    )


def distance_cases() -> Iterator[Case]:
    import scipy.spatial.distance as sd
    from scipy.spatial.transform import Rotation

    name = "scipy.spatial.distance.{}".format
    for of in (sd.cosine, sd.correlation, sd.cityblock, sd.chebyshev, sd.braycurtis, sd.canberra):
        yield Case(name(of.__name__), lambda x, of=of: of(x, Y), X)
    yield Case(name("mahalanobis"), lambda x: sd.mahalanobis(x, Y, np.eye(4)), X)
    yield Case(name("jensenshannon"), lambda x: sd.jensenshannon(x, P[::-1]), P)
    yield Case(name("euclidean"), lambda x: sd.euclidean(x, Y), X, "compiled (`scipy.linalg.norm`)")
    yield Case(name("cdist"), lambda x: np.sum(sd.cdist(x.reshape(2, 2), A)), X, COMPILED)
    yield Case(
        "scipy.spatial.transform.Rotation", lambda x: np.sum(Rotation.from_rotvec(x[:3]).apply(Y[:3])), X, COMPILED
    )


def interpolate_cases() -> Iterator[Case]:
    import scipy.interpolate as si

    name = "scipy.interpolate.{}".format
    at = np.arange(4.0)
    yield Case(name("barycentric_interpolate"), lambda y: si.barycentric_interpolate(at, y, 1.5), X)
    yield Case(name("krogh_interpolate"), lambda y: si.krogh_interpolate(at, y, 1.5), X)
    yield Case(name("lagrange"), lambda y: si.lagrange(at, y)(1.5), X)
    yield Case(name("interp1d"), lambda y: si.interp1d(at, y)(1.5), X)
    yield Case(name("CubicSpline"), lambda y: si.CubicSpline(at, y)(1.5), X, COMPILED)
    yield Case(name("PchipInterpolator"), lambda y: si.PchipInterpolator(at, y)(1.5), X, COMPILED)
    yield Case(name("RBFInterpolator"), lambda y: si.RBFInterpolator(at[:, None], y)([[1.5]])[0], X, COMPILED)


def integrate_cases() -> Iterator[Case]:
    import scipy.integrate as sg

    name = "scipy.integrate.{}".format

    def rates(t: Any, y: Any, a: Any) -> Any:
        return np.array([y[1], -a * y[0] - 0.1 * y[1] ** 3])

    def end(a: Any, y: Any, method: str) -> Any:
        return np.sum(sg.solve_ivp(rates, (0, 1), y, args=(a,), method=method, rtol=1e-8, atol=1e-8).y[:, -1])

    yield Case(name("trapezoid"), lambda y: sg.trapezoid(y, dx=0.3), X)
    yield Case(name("simpson"), lambda y: sg.simpson(y, dx=0.3), X)
    yield Case(name("romb"), lambda y: sg.romb(np.append(y, 1.0)), X)
    yield Case(name("cumulative_trapezoid"), lambda y: sg.cumulative_trapezoid(y) @ Y[:3], X)
    yield Case(name("cumulative_simpson"), lambda y: sg.cumulative_simpson(y, dx=0.3) @ Y[:3], X)
    yield Case(name("fixed_quad"), lambda a: sg.fixed_quad(lambda t: np.sin(a * t), 0, 1)[0], 1.3)
    yield Case(name("tanhsinh"), lambda a: sg.tanhsinh(lambda t: np.sin(a * t), 0, 1).integral, 1.3)
    yield Case(name("solve_ivp (RK45), of a parameter"), lambda a: end(a, [1.0, 0.5], "RK45"), 1.3)
    yield Case(name("solve_ivp (RK45), of the start"), lambda y: end(1.3, y, "RK45"), P[:2])
    yield Case(name("solve_ivp (DOP853)"), lambda y: end(1.3, y, "DOP853"), P[:2])
    yield Case(name("solve_ivp (RK23)"), lambda y: end(1.3, y, "RK23"), P[:2])
    yield Case(name("solve_ivp (Radau)"), lambda y: end(1.3, y, "Radau"), P[:2], "compiled (`scipy.linalg.lu_factor`)")
    yield Case(name("odeint"), lambda y: np.sum(sg.odeint(rates, y, [0.0, 1.0], (1.3,), tfirst=True)), P[:2], COMPILED)
    yield Case(name("quad"), lambda a: sg.quad(lambda t: np.sin(a * t), 0, 1)[0], 1.3, COMPILED)


def signal_cases() -> Iterator[Case]:
    import scipy.fft
    import scipy.signal as sig

    name = "scipy.signal.{}".format
    yield Case("scipy.fft.fft", lambda x: np.sum(np.abs(scipy.fft.fft(x)) ** 3), X)
    yield Case(name("windows.gaussian"), lambda s: np.sum(sig.windows.gaussian(5, s)), 1.3)
    yield Case(name("windows.kaiser"), lambda b: np.sum(sig.windows.kaiser(5, b)), 1.3)
    yield Case(name("windows.tukey"), lambda b: np.sum(sig.windows.tukey(7, b)), 0.6)
    yield Case(name("windows.general_cosine"), lambda a: np.sum(sig.windows.general_cosine(5, a)), X)
    yield Case(name("convolve"), lambda x: np.sum(sig.convolve(x, Y) ** 2), X)
    yield Case(name("fftconvolve"), lambda x: np.sum(sig.fftconvolve(x, Y) ** 2), X)
    yield Case(name("correlate"), lambda x: np.sum(sig.correlate(x, Y) ** 2), X)
    yield Case(name("hilbert"), lambda x: np.sum(np.abs(sig.hilbert(x))), X)
    yield Case(name("resample"), lambda x: sig.resample(x, 6) @ np.arange(6.0), X)
    yield Case(name("periodogram"), lambda x: sig.periodogram(x)[1] @ P[:3], X)
    yield Case(name("welch"), lambda x: sig.welch(np.append(x, x), nperseg=4)[1] @ P[:3], X)
    yield Case(name("freqz"), lambda b: np.sum(np.abs(sig.freqz(b, worN=5)[1])), X)
    yield Case(name("zpk2tf"), lambda x: np.sum(sig.zpk2tf(x[:2], x[2:], 1.3)[0]), X)
    yield Case(name("bilinear"), lambda x: np.sum(sig.bilinear(x[:2], np.array([1.0, 2.0]))[0]), X)
    yield Case(name("sawtooth"), lambda t: sig.sawtooth(t) @ Y, P)
    yield Case(name("gausspulse"), lambda t: np.sum(sig.gausspulse(t, fc=1)), X)
    yield Case(
        name("chirp"), lambda f0: np.sum(sig.chirp(X, f0, 1.0, 2.0)), 0.7, "makes Python floats of its parameters"
    )
    yield Case(name("detrend"), lambda x: sig.detrend(x) @ Y, X, "compiled (`scipy.linalg.lstsq`)")
    yield Case(name("savgol_filter"), lambda x: np.sum(sig.savgol_filter(x, 3, 1)), X, COMPILED)
    yield Case(name("lfilter"), lambda x: np.sum(sig.lfilter(np.ones(2), [1.0, 0.5], x)), X, COMPILED)


def linalg_cases() -> Iterator[Case]:
    import scipy.linalg as sl

    name = "scipy.linalg.{}".format
    yield Case(name("block_diag"), lambda x: np.sum(sl.block_diag(x[:2], x[2:]) ** 2), X)
    yield Case(name("hankel"), lambda x: np.sum(sl.hankel(x) ** 2), X)
    yield Case(name("companion"), lambda x: np.sum(sl.companion(x) ** 2), X)
    yield Case(name("leslie"), lambda x: np.sum(sl.leslie(x, Y[:3]) ** 2), X)
    yield Case(name("fiedler"), lambda x: np.sum(sl.fiedler(x) ** 2), X)
    yield Case(name("khatri_rao"), lambda x: np.sum(sl.khatri_rao(x.reshape(2, 2), A[:2]) ** 2), X)
    yield Case(name("toeplitz"), lambda x: np.sum(sl.toeplitz(x) @ x * Y), X)
    yield Case(name("circulant"), lambda x: np.sum(sl.circulant(x) @ x * Y), X)
    yield Case(name("solve"), lambda x: np.sum(sl.solve(2 * np.eye(4), x)), X, f"{COMPILED}: `np.linalg.solve`")
    yield Case(name("norm"), lambda x: sl.norm(x), X, f"{COMPILED}: `np.linalg.norm`")
    yield Case(name("expm"), lambda x: np.sum(sl.expm(x.reshape(2, 2))), X, COMPILED)


def sklearn_cases() -> Iterator[Case]:
    import sklearn.gaussian_process.kernels as gk
    import sklearn.metrics as sm
    import sklearn.metrics.pairwise as pairwise
    import sklearn.preprocessing as pre

    name = "sklearn.metrics.{}".format
    for of in (pairwise.rbf_kernel, pairwise.linear_kernel, pairwise.polynomial_kernel, pairwise.sigmoid_kernel):
        yield Case(name(f"pairwise.{of.__name__}"), lambda x, of=of: np.sum(of(x.reshape(2, 2), A)), X)
    yield Case(name("pairwise.cosine_similarity"), lambda x: np.sum(pairwise.cosine_similarity(x.reshape(2, 2), A)), X)
    yield Case(
        name("pairwise.euclidean_distances"), lambda x: np.sum(pairwise.euclidean_distances(x.reshape(2, 2), A)), X
    )
    yield Case(
        name("pairwise.laplacian_kernel"), lambda x: np.sum(pairwise.laplacian_kernel(x.reshape(2, 2), A)), X, COMPILED
    )
    for of in (sm.mean_squared_error, sm.mean_absolute_error, sm.r2_score):
        yield Case(name(of.__name__), lambda x, of=of: of(Y, x), X, FLOAT)
    yield Case(name("log_loss"), lambda p: sm.log_loss([0, 1, 1, 0], p), PROBABILITIES, FLOAT)
    yield Case(name("mean_tweedie_deviance"), lambda x: sm.mean_tweedie_deviance(P[::-1], x, power=1.5), P, FLOAT)
    yield Case("sklearn.gaussian_process.kernels.DotProduct", lambda x: np.sum(gk.DotProduct()(x.reshape(2, 2), A)), X)
    yield Case(
        "sklearn.gaussian_process.kernels.RBF",
        lambda x: np.sum(gk.RBF(1.3)(x.reshape(2, 2), A)),
        X,
        "compiled (`cdist`)",
    )
    yield Case("sklearn.preprocessing.scale", lambda x: pre.scale(x) @ Y, X)
    yield Case("sklearn.preprocessing.minmax_scale", lambda x: pre.minmax_scale(x) @ Y, X)


def statsmodels_cases() -> Iterator[Case]:
    import statsmodels.api as sms
    import statsmodels.genmod.families as families
    import statsmodels.robust.norms as norms
    import statsmodels.stats.moment_helpers as moments
    import statsmodels.tools.eval_measures as measures

    name = "statsmodels {}".format
    yield Case(name("OLS.loglike"), lambda b: sms.OLS(LABELS, DESIGN).loglike(b), BETA)
    yield Case(name("Logit.loglike"), lambda b: sms.Logit(LABELS, DESIGN).loglike(b), BETA)
    yield Case(name("Logit.score"), lambda b: sms.Logit(LABELS, DESIGN).score(b) @ Y[:3], BETA)
    yield Case(name("Probit.loglike"), lambda b: sms.Probit(LABELS, DESIGN).loglike(b), BETA)
    yield Case(name("Poisson.loglike"), lambda b: sms.Poisson(COUNTS, DESIGN).loglike(b), BETA)
    yield Case(
        name("NegativeBinomial.loglike"),
        lambda b: sms.NegativeBinomial(COUNTS, DESIGN).loglike(b),
        np.append(BETA, 0.5),
    )
    yield Case(name("MNLogit.loglike"), lambda b: sms.MNLogit(COUNTS % 3, DESIGN).loglike(b), np.append(BETA, BETA))
    yield Case(
        name("GLM.loglike (Poisson)"), lambda b: sms.GLM(COUNTS, DESIGN, family=families.Poisson()).loglike(b), BETA
    )
    yield Case(
        name("GLM.loglike (Gamma)"),
        lambda b: sms.GLM(COUNTS + 1, DESIGN, family=families.Gamma(families.links.Log())).loglike(b),
        BETA,
    )
    yield Case(name("Binomial.deviance"), lambda m: families.Binomial().deviance(LABELS[:4], m), PROBABILITIES)
    yield Case(name("robust.norms.HuberT.rho"), lambda x: np.sum(norms.HuberT().rho(x)), X)
    yield Case(name("robust.norms.TukeyBiweight.rho"), lambda x: np.sum(norms.TukeyBiweight().rho(x)), X)
    yield Case(name("eval_measures.rmse, meanabs"), lambda x: measures.rmse(x, Y) + measures.meanabs(x, Y), X)
    yield Case(name("moment_helpers.cov2corr"), lambda x: np.sum(moments.cov2corr(np.outer(x, x) + np.eye(4))), X)
    yield Case(name("stattools.durbin_watson"), sms.stats.durbin_watson, X)
    yield Case(name("stattools.jarque_bera"), lambda x: sms.stats.stattools.jarque_bera(x)[0], X)
    yield Case(name("tsa.acf"), lambda x: np.sum(sms.tsa.acf(x, nlags=2)), X)
    yield Case(
        name("OLS.fit, of y"), lambda y: np.sum(sms.OLS(y, DESIGN).fit().params), LABELS, "asks y for a plain array"
    )


PACKAGES = [
    Package("NumPy's polynomials", "numpy", numpy_cases),
    Package("scipy.optimize", "scipy", optimize_cases),
    Package("scipy.stats", "scipy", stats_cases),
    Package("scipy.spatial", "scipy", distance_cases),
    Package("scipy.interpolate", "scipy", interpolate_cases),
    Package("scipy.integrate", "scipy", integrate_cases),
    Package("scipy.signal and scipy.fft", "scipy", signal_cases),
    Package("scipy.linalg", "scipy", linalg_cases),
    Package("scikit-learn", "sklearn", sklearn_cases),
    Package("statsmodels", "statsmodels", statsmodels_cases),
]


def version(module: str) -> str | None:
    """The installed version of a package; None where it is missing."""
    try:
        return str(importlib.import_module(module).__version__)
    except ImportError:
        return None
