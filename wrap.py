"""Wrap docstrings, comments and fmt: skip lines at 110."""
import ast, io, re, sys, textwrap, tokenize
from pathlib import Path
W=110
def wrap_doc(text, indent):
    """text: source of the literal (with quotes), starting at column `indent`."""
    m=re.match(r'([rRuU]*)("""|\'\'\')',text)
    if not m: return text
    head=m.group(0); q=m.group(2); body=text[len(head):-3]
    lines=body.split('\n')
    out=[]; i=0; pad=' '*indent
    first=True
    n=len(lines)
    def plain(l):
        s=l.strip()
        return s and not s.startswith(('>>>','...','- ','* ','|','('+'`')) 
    doct=False
    while i<n:
        line=lines[i]
        ind=indent if i==0 else len(line)-len(line.lstrip())
        col=indent+len(head) if i==0 else 0
        s=line.strip()
        if s.startswith('>>>'): doct=True
        elif not s: doct=False
        # paragraph
        if not doct and s and not s.startswith(('>>>',)):
            j=i+1
            while j<n and lines[j].strip() and (len(lines[j])-len(lines[j].lstrip()))==ind and not lines[j].strip().startswith(('>>>','- ','* ')): j+=1
            para=lines[i:j]
            long=any((len(l)+(col if k==0 and i==0 else 0))>W for k,l in enumerate(para))
            last=j==n
            if last and len(para[-1])+(col if j-1==0 else 0)+3>W: long=True
            table=any(re.search(r'\S  +\S',l) for l in para)
            if long and not table:
                hang=ind
                words=' '.join(p.strip() for p in para)
                if re.match(r'(- |\* )',words): hang=ind+2
                init=' '*(indent+len(head)) if i==0 else ' '*ind
                closing=3 if last else 0
                w=textwrap.wrap(words,W,initial_indent=init,subsequent_indent=' '*hang,break_long_words=False,break_on_hyphens=False)
                if i==0: w[0]=w[0][indent+len(head):]
                out+=w
                if last:
                    if len(out)==len(w) and len(w[-1])+3<=W: pass
                    else: out.append(pad)
                i=j; continue
            out+=para; i=j; continue
        out.append(line); i+=1
    return head+'\n'.join(out)+q
def process(path):
    s=path.read_text()
    lines=s.split('\n')
    # 1 docstrings
    tree=ast.parse(s); edits=[]
    for node in ast.walk(tree):
        if isinstance(node,(ast.FunctionDef,ast.ClassDef,ast.Module,ast.AsyncFunctionDef)) and node.body and isinstance(node.body[0],ast.Expr) and isinstance(node.body[0].value,ast.Constant) and isinstance(node.body[0].value.value,str):
            d=node.body[0]
            if any(len(l)>W for l in lines[d.lineno-1:d.end_lineno]): edits.append((d.lineno,d.end_lineno,d.col_offset))
    for a,b,col in sorted(edits,reverse=True):
        text='\n'.join(lines[a-1:b]); pre=text[:col]; lit=text[col:]
        if not lit.rstrip().endswith(('"""',"'''")): continue
        new=wrap_doc(lit.rstrip(),col)
        lines[a-1:b]=(pre+new).split('\n')
    s='\n'.join(lines)
    # 2 comments
    lines=s.split('\n'); jobs=[]
    for t in tokenize.generate_tokens(io.StringIO(s).readline):
        if t.type==tokenize.COMMENT and len(lines[t.start[0]-1])>W: jobs.append(t)
    for t in sorted(jobs,key=lambda t:t.start[0],reverse=True):
        i=t.start[0]-1
        if i>=len(lines) or len(lines[i])<=W or t.string not in lines[i]: continue
        line=lines[i]; code=line[:t.start[1]].rstrip(); com=t.string
        if not code:  # a block of comment lines with the same indentation
            ind=len(line)-len(line.lstrip())
            a=b=i
            def same(k): return 0<=k<len(lines) and lines[k].startswith(' '*ind+'# ') and not re.match(r' *# (fmt|noqa|type|pragma|%%)',lines[k])
            while same(a-1): a-=1
            while same(b+1): b+=1
            words=' '.join(l.strip()[1:].strip() for l in lines[a:b+1])
            lines[a:b+1]=textwrap.wrap(words,W,initial_indent=' '*ind+'# ',subsequent_indent=' '*ind+'# ',break_long_words=False,break_on_hyphens=False)
            continue
        if re.match(r'# (fmt|noqa|type|pragma)',com) or com.startswith('#!') or com.startswith('# %%'): continue
        ind=len(line)-len(line.lstrip())
        w=textwrap.wrap(com[1:].strip(),W,initial_indent=' '*ind+'# ',subsequent_indent=' '*ind+'# ',break_long_words=False,break_on_hyphens=False)
        lines[i:i+1]=w+([code] if code else [])
    s='\n'.join(lines)
    # single-line statements with fmt: skip: ruff may break them
    tree=ast.parse(s); lines=s.split('\n')
    for node in ast.walk(tree):
        if isinstance(node,ast.stmt) and node.lineno==node.end_lineno and len(lines[node.lineno-1])>W and lines[node.lineno-1].rstrip().endswith('# fmt: skip'):
            lines[node.lineno-1]=lines[node.lineno-1].replace('# fmt: skip','').rstrip()
    s='\n'.join(lines)
    # 3 fmt: skip statements and other lines that can be split at a comma
    again=True; rounds=0
    while again and rounds<50:
        again=False; rounds+=1
        lines=s.split('\n')
        skips=[i for i,l in enumerate(lines) if l.rstrip().endswith('# fmt: skip')]
        if not skips: break
        tree=ast.parse(s)
        spans=[]
        for node in ast.walk(tree):
            if isinstance(node,ast.stmt) and not isinstance(node,(ast.FunctionDef,ast.ClassDef,ast.For,ast.While,ast.With,ast.If,ast.Try)):
                if lines[node.end_lineno-1].rstrip().endswith('# fmt: skip'): spans.append((node.lineno-1,node.end_lineno-1))
        toks=list(tokenize.generate_tokens(io.StringIO(s).readline))
        for a,b in spans:
            for i in range(a,b+1):
                l=lines[i]; L=len(l) if not l.rstrip().endswith('# fmt: skip') else len(l)
                if L<=W: continue
                depth=0; cands=[]
                for t in toks:
                    if t.start[0]-1!=i: continue
                    if t.type==tokenize.OP:
                        if t.string in '([{': depth+=1
                        elif t.string in ')]}': depth-=1
                        elif t.string==',' and t.end[1]<=W and len(l)>t.end[1]+1: cands.append((depth,t.end[1]))
                if not cands: continue
                low=min(d for d,_ in cands)
                if low>0 and i==a and False: continue
                best=max(c for d,c in cands if d==low)
                rest=l[best:].lstrip()
                if rest.startswith('#'): continue
                ind=len(l)-len(l.lstrip())
                if low>0 and i==a: ind+=4
                lines[i]=l[:best]; lines.insert(i+1,' '*ind+rest); again=True; break
            if again: break
        s='\n'.join(lines)
    ast.parse(s)
    path.write_text(s)
if __name__=='__main__':
    for p in sys.argv[1:]:
        try: process(Path(p))
        except Exception as e: print(p,type(e).__name__,e)
