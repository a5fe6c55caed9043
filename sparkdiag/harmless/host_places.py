"""Places in which a word is a host's name whatever it looks like, as programs of this trade write them. Pure.

Each pattern goes with words, in lower case, without one of which a text need not be looked at.
"""

import re

LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?"
HOST = rf"{LABEL}(?:\.{LABEL}){{0,10}}\.?"
_NAMED = rf"(?P<host>(?=[\w.-]{{0,80}}[A-Za-z]){HOST})"
_EDGE = r"(?<![\w./:@%+~-])"
_RANGE = r"[A-Za-z][\w.-]{0,80}(?:\[[\d,-]{1,200}\])?"
_LIST = rf"(?P<host>{_RANGE}(?::\d{{1,5}})?(?:,{_RANGE}(?::\d{{1,5}})?){{0,200}})"
_SHARE = r":/(?:exports?|home|data|mnt|nfs|srv|scratch|vol\w{0,10}|users|shared?|gpfs|lustre|models)\b"
_COUNTED = (
    "rank|step|layer|cuda|mlx|b?float|u?int|block|batch|worker|seq|expert|token|line|head|shape|chunk|page|thread|cpu|gpu|sm|tp"
    "|dp|pp|py|test|epoch|iter|frame|stage|group|slot|req"
)
"""What is counted beside machines."""

Places = tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]

CERTAIN: Places = (
    # zork:4711:4711 [0] NCCL INFO ...
    (("nccl",), re.compile(rf"{_EDGE}{_NAMED}(?=:\d{{1,8}}:\d{{1,8}} (?:\[\d{{1,4}}\] |NCCL ))")),
    # (EngineCore pid=1, node=zork)
    (("pid=",), re.compile(rf"(?P<before>\bpid=\d{{1,8}}, (?:node|ip|host)=){_NAMED}(?=\))")),
    # Nov 30 04:01:02 zork vllm[123]: ...
    (
        ("]: ", " kernel: "),
        re.compile(
            r"(?P<before>^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
            rf"|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,:Z+-]{{0,16}}) )"
            rf"{_NAMED}(?= (?:kernel|[\w./()@-]{{1,64}}\[\d{{1,8}}\]): )",
            re.MULTILINE,
        ),
    ),
    # Linux zork 6.8.0-51-generic #52-Ubuntu SMP
    (("linux ",), re.compile(rf"(?P<before>\bLinux ){_NAMED}(?= \d{{1,2}}\.\d{{1,3}}[\w.+-]{{0,64}} (?:#\d|SMP))")),
    # DESKTOP-1A2B3C4, Zorks-MacBook-Pro
    (
        ("desktop-", "laptop-", "-macbook"),
        re.compile(
            r"(?<![\w.-])(?P<host>(?:DESKTOP|LAPTOP)-(?=[A-Z0-9]{0,14}\d)[A-Z0-9]{6,15}"
            r"|[A-Z][A-Za-z0-9]{1,30}(?:-[A-Za-z0-9]{1,30})?-MacBook(?:-(?:Pro|Air))?)(?![\w-])"
        ),
    ),
)
"""Nothing else is written like this."""

TOLD: Places = (
    # SLURM_JOB_NODELIST=zork[001-004,007], --nodelist zork1,zork2
    (
        ("nodelist", "node_list", "hostlist"),
        re.compile(
            r"(?P<before>(?:\b[A-Z_]{0,40}NODE_?LIST=|--?(?:nodelist|hostlists?|node-list)[= ])[\"']?)"
            rf"{_LIST}(?![\w(.-])",
        ),
    ),
    # mpirun -H zork1:4,zork2:4
    (
        ("-h", "host"),
        re.compile(
            rf"(?P<before>(?<![\w-])(?:-H|--?hosts?)[= ][\"']?)(?=[^\s,]{{1,90}}(?:,|:\d|\d)){_LIST}(?![\w(.-]|:)"
        ),
    ),
    # --master-addr zork --port 8000
    (
        ("host", "addr"),
        re.compile(
            r"(?P<before>(?<![\w-])--(?:[a-z]{1,20}[-_]){0,4}(?:host|hostname|addr|address)[ =][\"']?)"
            r"(?P<host>[A-Za-z][A-Za-z0-9-]{1,62})(?=[\"']?(?:\s+-|\\?\s*$|[\"'],|\\n)|:[1-9]\d{2,4}(?!\w))",
            re.MULTILINE,
        ),
    ),
    # kv_ip=zork, "kv_ip": "zork"
    (
        ("ip", "addr"),
        re.compile(
            r"(?P<before>(?<![\w.-])(?:--)?(?:(?:[a-z]{1,20}[_-]){1,4}ip|(?:[a-z]{1,20}[_-]){0,3}"
            r"(?:node[_-]ip[_-]address|ip[_-]address|node[_-]address|server[_-]address|redis[_-]address|gcs[_-]address))"
            rf"(?:=[\"']?|[\"']\s{{0,4}}:\s{{0,4}}[\"'])){_NAMED}(?![\w(\[-]|[\"']\{{)",
            re.IGNORECASE,
        ),
    ),
    # hostname: zork
    (
        ("hostname:", "nodename:", "host name:", "computer name:"),
        re.compile(
            rf"(?P<before>\b(?:hostname|nodename|(?:host|computer) name):\s{{1,8}}){_NAMED}(?=[ \t]*+(?:$|[,;)}}\n]))",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    # Failed to connect to zork:8000, --rdzv-endpoint=zork:29400, <zork:1234>
    (
        (
            "connect",
            "endpoint",
            "addr",
            "listen",
            "bound",
            "bind",
            "reach",
            "peer",
            "server",
            "master",
            "head",
            "node",
            "<",
        ),
        re.compile(
            r"(?P<before>(?:\bconnect(?:ed|ing|ion)? (?:to |from |with )?|\blisten(?:ing|s)? (?:on|at) "
            r"|\b(?:bound|bind(?:ing)?) to |\breach |\bpeer |\b[\w-]{0,30}(?:endpoint|address|addr)s?[=: ]{1,2}"
            r"|\b(?:server|master|head|node) (?:at|on|is) )[\"'(]?(?:server |host |node |peer )?|(?<![\w>])<)"
            r"(?P<host>[A-Za-z][A-Za-z0-9-]{1,62})(?=:[1-9]\d{2,4}(?![\w:.]))",
            re.IGNORECASE,
        ),
    ),
    # getaddrinfo zork failed
    (
        ("resolve", "getaddrinfo", "host name", "not known", "connect to"),
        re.compile(
            r"(?P<before>\bresolve host(?:name)?:? [\"']?|\bgetaddrinfo (?:for )?(?=\S{1,100} failed)|\bresolve [\"'(]"
            r"|\btranslate host name [\"']|\bservice not known: (?=\S{1,100}$)"
            r"|\bconnect to (?:host )?(?=\S{1,100} port \d))"
            rf"{_NAMED}(?![\w(-])",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    # ssh zork@gpu
    (
        ("ssh ", "scp ", "rsync ", "sftp ", "mosh "),
        re.compile(
            r"(?P<before>\b(?:ssh|scp|rsync|sftp|mosh) (?:-\S{1,80} (?:[\w./:-]{1,80} )?){0,4}"
            r"(?:[a-z_][\w.-]{0,31}|\[user\])@)"
            r"(?P<host>[A-Za-z0-9][\w-]{0,62})(?![\w.@])"
        ),
    ),
    # mount zork:/export
    (
        (":/",),
        re.compile(
            rf"(?P<before>\b(?:nfs4?|mount|rsync|scp)\s{{1,4}}(?:-\S{{1,40}}\s{{1,4}}){{0,4}})(?P<host>[a-z][a-z0-9-]{{2,62}})(?={_SHARE})"
        ),
    ),
    # zork-7:/data
    ((":/",), re.compile(rf"{_EDGE}(?P<host>[a-z][a-z0-9-]{{1,60}}\d)(?={_SHARE})")),
    # \\zork\share
    (
        ("\\\\",),
        re.compile(
            r"(?P<before>(?<![^\s\"'=(])(?:\\\\){1,2})(?!u[0-9a-f]{4})(?P<host>[A-Za-z][A-Za-z0-9-]{3,30})(?=\\{1,2}[A-Za-z]\w{3})"
        ),
    ),
    # arn:aws:iam::123456789012:role/x
    (("arn:",), re.compile(r"(?P<before>\barn:[a-z-]{2,12}:[a-z0-9-]{0,40}:[a-z0-9-]{0,30}:)(?P<host>\d{12})(?=:)")),
    # zorknode001:29500
    ((":",), re.compile(rf"{_EDGE}(?P<host>(?!{_COUNTED})[a-z]{{3,30}}\d{{2,5}})(?=:[1-9]\d{{3,4}}(?![\w:.]))")),
)
"""Here a word that is none of a language's own is a host's name."""

_CLOUDS = (
    r"(?:amazonaws\.com(?:\.cn)?|windows\.net|azure\.com|azurewebsites\.net|azurecr\.io|azmk8s\.io|run\.app|pkg\.dev|appspot\.com"
    r"|cloudfunctions\.net|ngrok\.io|ngrok\.app|ngrok-free\.app|trycloudflare\.com|runpod\.(?:net|io)|vast\.ai|herokuapp\.com"
    r"|vercel\.app|fly\.dev|onrender\.com|coreweave\.(?:com|cloud)|lambdalabs\.com|atlassian\.net|slack\.com|hf\.space"
    r"|fritz\.box|home)"
)
_ENDS = r"(?:com|org|edu|gov|mil)"
_OTHER_ENDS_TEXT = (
    "net prod io ai de dev cloud eu fr ch at nl uk cn jp kr in se no dk fi it es pl cz ca au tech co me us br tw sg ru"
)
_OTHER_ENDS = frozenset(_OTHER_ENDS_TEXT.split())
"""Words that a program's dotted names may end with as well."""
DOMAIN = re.compile(
    rf"(?<![\w./@%$-])(?<!\\)(?P<host>(?P<cloud>(?:{LABEL}\.){{1,6}}{_CLOUDS})|(?:{LABEL}\.){{2,6}}{_ENDS}"
    rf"|(?P<port>(?:{LABEL}\.){{1,6}}(?:{_ENDS}(?=:[1-9]\d)|(?:{'|'.join(sorted(_OTHER_ENDS))})(?=:[1-9]\d{{3,4}}(?![\w:]))))"
    rf"|(?:{LABEL}\.){{2,6}}(?:{'|'.join(sorted(_OTHER_ENDS))}))\.?(?![\w(\[=-]|\.\w)",
    re.IGNORECASE,
)
"""A whole name: of a cloud's, or that ends like one of the Internet's and is no dotted name of a program's."""


def is_domain(match: re.Match[str], labels: list[str]) -> bool:
    """Whether it is neither a program's dotted name (``torch.nn.io``) nor a version (``2.11.0.dev``)."""
    first = labels[0]
    if first.isdecimal() and labels[1].isdecimal():
        return False
    sure = match["cloud"] or match["port"] or labels[-1] not in _OTHER_ENDS
    return bool(sure) or any("-" in label for label in labels) or first[-1].isdecimal()
