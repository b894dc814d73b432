import torch, math, glob
from torch.nn.functional import leaky_relu
torch.set_num_threads(1)
from amortes.prior.gp import PRIORS, Hyperparameters
from amortes.nets.kernel.conditioning import condition
from amortes.nets.kernel.particles import Particles
from amortes.oracles.brute_force import rank_correlation
prior = PRIORS["real"]
def load(pattern):
    out=[]
    for f in sorted(glob.glob(pattern)): out += torch.load(f, weights_only=False)
    return out
def rebuild(t):
    h = Hyperparameters(**t["hyper"])
    p = Particles(h, t["log_weights"], torch.zeros(1))
    return condition(prior, p, t["X"][None], t["y"][None])
def metrics(value, truth):
    value=value.double(); truth=truth.double()
    top = truth.topk(min(48,len(truth))).indices
    return (rank_correlation(value, truth), 100*float(1-truth[value.argmax()]/truth.max()), rank_correlation(value[top], truth[top]))
def overlaps(m, v):  # P x q -> P x P x q
    t = v[:,None]+v[None]
    return ((4*v[:,None]*v[None]).sqrt()/t).sqrt()*torch.exp(-0.25*(m[:,None]-m[None]).square()/t)
def entropy(w, m, v, O=None):  # w: P x J -> q x J
    if O is None: O = overlaps(m, v)
    A = torch.einsum('prq,rj->pqj', O, w).clamp_min(1e-30)
    return torch.einsum('pj,pq->qj', w, 0.5*v.log()) - torch.einsum('pj,pqj->qj', w, A.log())
def table(rows, names):
    import numpy as np
    for k in names:
        a=np.array([r[k] for r in rows]); s=a.std(0)/math.sqrt(max(1,len(a)-1))
        print(f"{k:42s} rank {a[:,0].mean():.3f}±{s[0]:.3f}  lost {a[:,1].mean():5.1f}±{s[1]:.1f}  top48 {a[:,2].mean():.3f}±{s[2]:.3f}")
