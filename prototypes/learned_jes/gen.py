"""Teacher datasets. usage: gen.py first_seed last_seed outdir [ref]   (ref: 256 draws, 192 queries: test)"""
import sys, time, os, math
import numpy as np, torch
from torch.nn.functional import leaky_relu
torch.set_num_threads(1)
from amortes.acquisition import Fitted, Domain, maximise
from amortes.acquisition.output_warp import fit_warped
from amortes.acquisition.policy import log_belief
from amortes.pretrained import load_pretrained
from amortes.prior.gp import PRIORS
from amortes.prior.paths import Paths
from amortes.prior.kernels import covariance, scaled
from amortes.prior.traces import TraceConfig, Tracer
from amortes.nets.kernel.gains import Gains, LOSSES
from amortes.nets.kernel.representers import RepresenterConfig, thompson_draws
from amortes.nets.kernel.network import GAIN_PARTICLES
from amortes.nets.distributions.overlap import overlap_entropy
from amortes.nets.kernel import numpy_kernels as nk
from amortes.random import generator, derive_seeds

net, _ = load_pretrained("kernel-real")
prior = PRIORS["real"]
SOME = RepresenterConfig(optima=16)

def sample_task(seed, dn=None):
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1,2,3,4,5,6,6,8,10,12,16])) if dn is None else dn[0]
    n = int(round(math.exp(rng.uniform(math.log(15), math.log(120))))) if dn is None else dn[1]
    if dn is None and rng.random() < 0.05: n = int(rng.integers(5, 15))
    hyper = prior.sample(np.array([seed*7+1]), d)
    # noise that matters: 0.06..1 of the signal's sd, rarely more
    sig = float(hyper.output_variance.sqrt())
    hyper.noise_sd[:] = sig * math.exp(rng.normal(math.log(0.35), 0.8)) if True else 0
    path = Paths.sample(prior.kernel, hyper, np.array([seed*7+2]))
    s = float(hyper.noise_sd)
    tg = torch.Generator().manual_seed(seed)
    if rng.random() < 1/3:
        tr = Tracer(1, d, TraceConfig(), tg)
        def obs(x): return path(x) + s*torch.randn(1,1,generator=tg)
        X, y = tr.context(n, n, obs)
        return hyper, X[0].double(), y[0].double(), 0
    # greedy optimiser with the true hyperparameters, in numpy
    n0 = min(n, int(rng.integers(max(2, d//2), 10+d)))
    U = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed).draw(512+n0, dtype=torch.float64).numpy()
    H = nk.Warp(hyper.warp.numpy())
    ell = hyper.lengthscale.numpy()
    def V(x): return H.values(nk.log_odds(x[None]))[0]/ell[0]
    k0 = float(hyper.output_variance); rough = float(hyper.roughness)
    def K(A,B): return k0*nk.correlation("mixed", nk.square_distance(A,B), rough)
    X = list(U[:n0]); y = [float(path(torch.tensor(x,dtype=torch.float32)[None,None]))+s*rng.normal() for x in X]
    kind = rng.integers(3)
    step = math.exp(rng.normal(-3,.5)); lengths = np.minimum(ell[0]*0.5,0.5)
    mean0 = float(hyper.mean)
    while len(X) < n:
        A = np.array(X); VA = V(A)
        L = np.linalg.cholesky(K(VA,VA)+(s*s+1e-8)*np.eye(len(A)))
        Li = np.linalg.inv(L); r = np.array(y)-mean0; a = Li.T@(Li@r)
        post = mean0 + K(VA,VA)@a
        top = A[np.argsort(-post)[:4]]
        cen = top[rng.integers(len(top),size=96)]
        sc = 10**rng.uniform(-2,0,size=(96,1))*np.minimum(ell[0],0.6)
        mask = rng.random((96,d)) < np.maximum(rng.random((96,1)),1.0/d)
        near = np.clip(cen+sc*rng.normal(size=(96,d))*mask,0,1)
        far = U[n0+rng.integers(512,size=64)]
        C = np.concatenate([near,far]); kc = K(VA,V(C)); m = mean0+kc.T@a
        w = Li@kc; v = np.maximum(k0-(w*w).sum(0),1e-12); sd=np.sqrt(v)
        b = post.max()
        if kind == 0: acq = m+2*sd
        elif kind == 1:
            u = (m-b)/sd; acq = np.where(u>-5, sd*(np.exp(-.5*u*u)/2.5066+u*0.5*(1+np.vectorize(math.erf)(u/1.41421))), -1e3+u)
        else: acq = m+sd*rng.normal(size=len(m))*1.5
        x = C[int(np.argmax(acq))]
        X.append(x); y.append(float(path(torch.tensor(x,dtype=torch.float32)[None,None]))+s*rng.normal())
    return hyper, torch.tensor(np.array(X)), torch.tensor(np.array(y),dtype=torch.float64), 1+int(kind)

def search_points(fitted, gains, seed, d, n, want=64):
    seen = []
    def score(Xq):
        seen.append(Xq.detach())
        g = gains.at("jes", Xq[None]).mean(2)[0]
        return g.clamp_min(1e-100).log() + log_belief(Xq, n)
    dom = Domain.cube(d) if hasattr(Domain,'cube') else Domain(torch.zeros(d,dtype=torch.float64), torch.ones(d,dtype=torch.float64))
    with torch.inference_mode(False):
        maximise(score, dom, seed=seed, around=fitted.best_points(8), scale=fitted.lengthscale, rough=fitted.rough_moments)
    return seen

def teacher(cond, Xq, draws_config, name="jes"):
    draws = thompson_draws(cond, draws_config)
    G = Gains(cond, draws)
    given, W = G.given(name)      # W: 1 x k x 1 x (s+1)
    mean, var, m, v = given.posterior(Xq)
    nv = cond.noise_variance[..., None]
    M = torch.cat([m, mean[..., None]], -1); Vv = torch.cat([v, var[..., None]], -1) + nv[..., None]
    E = overlap_entropy(W, M, Vv)
    lost = E[..., -1:] - E[..., :-1]
    gain = leaky_relu(lost, LOSSES)[0]  # q x s
    w = W[0, :, 0, :-1]          # k x s
    ww = w/ w.sum(1, keepdim=True).clamp_min(1e-30)
    out = dict(gain=gain.mean(1), gain_a=gain[:, ::2].mean(1), gain_b=gain[:, 1::2].mean(1), lost=lost[0].mean(1),
               w=w.float(), mean0=mean[0], var0=var[0],
               mbar=m[0].mean(-1), vbar=v[0].mean(-1),
               mw=torch.einsum('kqs,ks->kq', m[0], ww), vw=torch.einsum('kqs,ks->kq', v[0], ww),
               msqw=torch.einsum('kqs,ks->kq', (m[0]-mean[0][...,None]).square(), ww),
               x=draws.optima.x[0].float(), f=draws.optima.f[0].float())
    return out, draws, G

@torch.no_grad()
def one(seed, ref=False, dn=None):
    t0=time.process_time()
    hyper, X, y, kind = sample_task(seed, dn)
    if float(y.std()) < 1e-9: return None
    # distinct points only
    t1=time.process_time()
    fitted = fit_warped(net, X, y, maximise=True)
    share = fitted.noise_share
    if share < (0.1 if ref else 0.08): return None
    d, n = X.shape[1], len(X)
    t2=time.process_time()
    cond = fitted.state.conditioned.thinned(GAIN_PARTICLES).kriging_believer()
    dr16 = thompson_draws(cond, SOME if not ref else RepresenterConfig())
    g16 = Gains(cond, dr16)
    seen = search_points(fitted, g16, seed, d, n)
    t3=time.process_time()
    rng = torch.Generator().manual_seed(seed+1)
    screen, climbs = seen[0], torch.cat(seen[1:]) if len(seen)>1 else seen[0]
    def pick(A, c):
        return A[torch.randperm(len(A), generator=rng)[:c]]
    Q = 192 if ref else 96
    parts = [pick(screen, Q*5//16), pick(climbs, Q*6//16), pick(dr16.X[0], Q//8)]
    kinds = torch.cat([torch.full((len(p),), i) for i, p in enumerate(parts)])
    rest = Q - sum(map(len, parts))
    glob = torch.rand(rest, d, generator=rng, dtype=torch.float64)
    if d>1:  # some about the best
        h = rest//2
        c = fitted.best_points(8); c = c[torch.randint(len(c),(h,),generator=rng)]
        glob[:h] = (c+0.1*torch.randn(h,d,generator=rng,dtype=torch.float64)).clamp(0,1)
    Xq = torch.cat(parts+[glob])[None]; kinds = torch.cat([kinds, torch.full((rest,), 3)])
    conf = RepresenterConfig(count=256, num_global=1024, optima=256) if ref else RepresenterConfig(count=128, num_global=256, optima=128)
    out, draws, G = teacher(cond, Xq, conf)
    t4=time.process_time()
    h = cond.particles.hyper
    out = {k: v.float() for k, v in out.items()}
    out.update(seed=seed, d=d, n=n, kind=kind, share=share, X=X, y=cond.y[0], Xq=Xq[0], kinds=kinds.to(torch.int8),
               hyper={f: (getattr(h,f) if getattr(h,f) is not None else None) for f in ("lengthscale","output_variance","noise_sd","mean","warp","roughness")},
               log_weights=cond.particles.log_weights, best=fitted.best_points(1)[0], times=(t1-t0,t2-t1,t3-t2,t4-t3))
    if ref:
        out["gain32"] = g16.at("jes", Xq).mean(2)[0]
        o32 = RepresenterConfig(count=128, num_global=256, optima=128)
        out["gain128"] = teacher(cond, Xq, o32)[0]["gain"]
        # 32 other draws, on 96 representer points
        out["gain32b"] = teacher(cond, Xq, RepresenterConfig(count=96, num_global=192, optima=32))[0]["gain"]
        out["units"] = None
    return out

if __name__ == "__main__":
    lo, hi, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    ref = len(sys.argv) > 4
    os.makedirs(folder, exist_ok=True)
    block, start = [], lo
    cells = [(d,n) for n in (15,30,60,100) for d in (1,2,4,6,10,16)]
    t=time.time(); seed=lo; made=0
    while seed < hi:
        dn = cells[made % len(cells)] if ref else None
        try: o = one(seed, ref, dn)
        except Exception as e: print("fail", seed, repr(e)[:300], flush=True); o=None
        seed += 1
        if o is not None: block.append(o); made += 1
        if len(block) == 32 or (seed == hi and block) or (ref and len(block)==24):
            p=f"{folder}/{block[0]['seed']:07d}.pt"; torch.save(block, p+".tmp"); os.rename(p+".tmp", p)
            print(seed, made, f"{time.time()-t:.0f}s", [round(float(sum(b['times'][i] for b in block)/len(block)),3) for i in range(4)], flush=True); block=[]
