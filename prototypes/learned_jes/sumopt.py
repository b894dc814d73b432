import json,math,collections,statistics as st,sys
R={}
for l in open(sys.argv[1] if len(sys.argv)>1 else "opt.jsonl"):
    r=json.loads(l); R[(r["f"],r["seed"],r["arm"])]=r
runs=sorted({k[:2] for k in R})
full=[k for k in runs if all((*k,a) in R for a in ("as is","balanced","learned"))]
print("complete",len(full))
lg=lambda k,a,n: math.log10(max(R[(*k,a)]["reg"][str(n)],1e-6))
def show(D): return "%+.3f ± %.3f"%(st.mean(D),st.stdev(D)/len(D)**.5) if len(D)>1 else D
for a,b in (("balanced","as is"),("learned","as is"),("learned","balanced")):
    print(a,"-",b,[show([lg(k,a,n)-lg(k,b,n) for k in full]) for n in (30,40,60)])
for a in ("as is","balanced","learned"): print(a,"ms per ask",st.mean(1e3*R[(*k,a)]["cpu"] for k in full), "mean log10", [round(st.mean(lg(k,a,n) for k in full),3) for n in (30,40,60)])
print("ratio of CPU, learned / as is",st.mean(R[(*k,"learned")]["cpu"]/R[(*k,"as is")]["cpu"] for k in full))
