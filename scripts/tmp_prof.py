import sys, time, tempfile, cProfile, pstats, torch, random, gzip
from pathlib import Path
from hf_xst import BiaffineParser, BiaffineParserConfig, CrfTagger, CrfTaggerConfig
from hf_xst.data import WordVectors, ConlluSentence, write_conllu, iterate_unlabelled
from hf_xst.training.annotation import Annotator, AnnotationSettings
from hf_xst.training.confidence import Reading
from hf_xst.training.resuming import BlockFile
from hf_xst.hub.outputs import FORMS
from hf_xst.models import pretrained_words
dev="cuda" if torch.cuda.is_available() else "cpu"
if dev=="cpu": torch.set_num_threads(1)
torch.manual_seed(0); random.seed(0)
words=[f"word{i}" for i in range(2000)]
L=40
def parser(layers):
    cfg=BiaffineParserConfig(labels=[f"l{i}" for i in range(L)],upos_names=["NOUN","VERB"],context_layers=layers)
    return BiaffineParser.from_vectors(cfg, WordVectors(words, torch.randn(2000,300).numpy(),"inv","0"*64)).eval().to(dev)
layers=int(sys.argv[1]); n=int(sys.argv[2]); prof=len(sys.argv)>3
m=parser(layers)
T=Path(tempfile.mkdtemp())
def sents():
    for i in range(n):
        k=max(1,min(60,int(random.gauss(18,8))))
        ws=random.choices(words,k=k)
        s=ConlluSentence.from_words(ws,sent_id=f"s{i}",columns={"upos":random.choices(["NOUN","VERB"],k=k),"feats":["Case=Nom|Number=Sing"]*k,"misc":["SpaceAfter=No"]*k})
        yield s
write_conllu(sents(), T/"in.conllu")
class A(Annotator):
    t=0.0
    def _annotated(self,b):
        s=time.perf_counter(); r=super()._annotated(b); A.t+=time.perf_counter()-s; return r
def run(reading, out="o.conllu", src="in.conllu"):
    A.t=0.0
    a=A([m],AnnotationSettings(reading)); form=FORMS["conllu" if "conllu" in out else "jsonl"](a)
    s=time.perf_counter()
    with BlockFile(T/out,{}) as f:
        for b in a.blocks(iterate_unlabelled(T/src),a.row):
            f.add(form(b,None),{"x":1})
    tot=time.perf_counter()-s
    print(f"{reading} {out}: total {tot:.2f}s model {A.t:.2f}s share {A.t/tot:.3f} {n/tot:.0f} sent/s; other {1e3*(tot-A.t)/n:.3f} ms/sent")
    return tot
run(Reading())
if prof:
    p=cProfile.Profile(); p.enable(); run(Reading()); p.disable()
    pstats.Stats(p).sort_stats("tottime").print_stats(28)
base=run(Reading())
c=run(Reading(confidence=True)); print("confidence ratio",c/base)
run(Reading(rule="minimum-risk"))
run(Reading(confidence=True),"o.jsonl")
run(Reading(),"o.conllu.gz")
