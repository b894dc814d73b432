import torch
def balance(ev, lw, iters=60):
    c=torch.zeros_like(lw); w=lw.exp()
    for _ in range(iters):
        W=(lw[:,None]+ev+c[:,None]).softmax(0); wb=W.mean(1).clamp_min(1e-30)
        c=c+ (w.clamp_min(1e-30)/wb).log().clamp(-3,3)
    return (lw[:,None]+ev+c[:,None]).softmax(0)
