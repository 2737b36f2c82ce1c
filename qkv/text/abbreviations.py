"""What a full stop may belong to, by language: the tables that `sentences` reads, in lower case and without the stop.

A language is one row; only words that sentences seldom end with are in `never`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Abbreviations:
    """Words that a full stop shortens, and words that begin sentences."""

    never: frozenset[str]
    """No sentence ends with these."""
    before_numbers: frozenset[str]
    """No sentence ends with these where a number comes next."""
    seldom: frozenset[str]
    """A sentence ends with these only where one of `starters` comes next."""
    starters: frozenset[str]
    """Words that, written with a capital, begin a sentence."""
    endings: tuple[str, ...] = ()
    """Words that end in these are in `never`: compounds."""
    ordinals: bool = False
    """Whether a number with a full stop is an ordinal: `am 3. Oktober`."""


def _row(
    never: str, before_numbers: str, seldom: str, starters: str, *, endings: str = "", ordinals: bool = False
) -> Abbreviations:
    return Abbreviations(
        frozenset(never.split()),
        frozenset(before_numbers.split()),
        frozenset(seldom.split()),
        frozenset(starters.split()),
        endings=tuple(endings.split()),
        ordinals=ordinals,
    )


_ROWS = {
    "en": _row(
        never="""mr mrs ms mx dr prof rev hon st mt ft gen col maj capt cmdr lt sgt cpl pvt sen rep gov pres
            supt messrs e.g i.e eg ie cf viz vs al approx resp esp incl excl ca ph.d""",
        before_numbers="""no nos nr p pp art vol vols fig figs sec sect ch chap eq eqs ref refs tab par para ed
            app jan feb mar apr jun jul aug sep sept oct nov dec tel ext""",
        seldom="""etc inc ltd corp co bros jr sr esq dept univ ave blvd rd a.m p.m a.d b.c u.s u.k u.n e.u mon
            tue tues wed thu thurs fri""",
        starters="""a an and as at but by each every for from furthermore he her here his how however i if in is
            it its many meanwhile most my no now of on one or our she since so some such that the their then
            there these they this those though thus to today we well what when where which while who why with
            yes you your did do does are was were""",
    ),
    "de": _row(
        never="""hr hrn fr frl dr prof dipl ing st geb gest verh bzw bspw ca evtl ggf ggü inkl exkl zzgl abzgl
            max min sog vgl z.b d.h u.a o.ä z.t z.zt i.d.r m.e i.a z.hd bes einschl entspr gem insb lt mind incl
            mr mrs christl dt engl frz ital lat griech v.chr""",
        before_numbers="""nr nrn abs art bd bde kap s abb tab anm ziff rn rdn hrsg aufl jg tel jan feb mär apr
            jun jul aug sep sept okt nov dez""",
        seldom="usw etc mio mrd tsd str pl std co sen jun v.a u.v.m u.ä n.chr v.chr bzgl abschn nachm vorm",
        starters="""aber alle allerdings als also am an auch auf aus bei beide bis da dabei dadurch dafür
            dagegen daher damit danach dann daran darauf darin darum das dass dazu dem den denn der deren des
            deshalb die dies diese dieser dieses doch dort du ein eine einem einen einer eines er es etwa euer
            für gegen heute hier ich ihr ihre im in ist ja jede jeder jedes jedoch jetzt kein keine man mehr
            mein meine mit nach nein nicht noch nun nur ob oder ohne sein seine seit sie sind so sogar solche
            somit sondern trotz trotzdem über um und uns unser unsere unter viele vielleicht vom von vor wann
            warum was weil welche wenn wer wie wir wird wo zu zum zur zwar""",
        endings="str",
        ordinals=True,
    ),
    "fr": _row(
        never="""m mm mgr mlle mr mrs dr pr prof st ste cf env ex av apr boul bd fg p.ex c.-à-d éd min max resp
            vs j.-c not lat""",
        before_numbers="n no art al chap fig p pp pag vol t tél éq sect réf janv févr avr juil sept oct nov déc",
        seldom="etc c.a s.a cie",
        starters="""à alors après au aucun aujourd aussi autre avant avec beaucoup c ce ceci cela celle celui
            ces cet cette chaque comme comment d dans de depuis des donc du elle elles en enfin ensuite et il
            ils j je l la le les leur leurs lors lorsque m ma mais même mes mon n ne non nos notre nous on or ou
            où oui par parce pendant peu plus plusieurs pour pourquoi puis qu quand que quel quelle quelques qui
            s sa sans selon ses si son sous sur ta tes toi ton tous tout toute toutefois toutes très tu un une
            vos votre vous y""",
    ),
    "it": _row(
        never="""mr mrs sig sigg sig.ra sig.na dott dott.ssa dr prof prof.ssa avv ing arch geom rag on sen mons
            don s.p.a ca cfr es p.es vs egr gent spett lgs""",
        before_numbers="""n nn art artt pag pagg p pp cap fig tab vol sez par lett tel gen feb mar apr mag giu
            lug ago set ott nov dic""",
        seldom="ecc etc a.c d.c s.r.l",
        starters="""a al alla allora anche ancora c che chi ci come con così cosa d da dal dalla del della di
            dopo dove e ed è egli era essa esse essi esso gli ha hanno i il in infatti invece io l la le lei
            loro lui ma mentre nel nella nessuno noi non nostra nostro o ogni oggi perché però per più poi qual
            quando quanto quella quelle quelli quello questa queste questi questo qui quindi se sei senza si sì
            sono su sua sue sul suo suoi tra tu tutti tutto un una uno vi voi""",
    ),
    "es": _row(
        never="""mr mrs sr sra sres srta sto sta dr dra dres prof profa lic ing arq gral cnel cap d.ª d dña ud
            uds vd vds av avda admón aprox cf cfr p.ej ej vs p dpto atte""",
        before_numbers="""n nº núm núms art arts pág págs pp cap caps fig figs vol vols tel tfno ene feb mar abr
            may jun jul ago sept oct nov dic""",
        seldom="etc ee uu ee.uu cía s.a s.l a.c d.c",
        starters="""a además ahora al algunas algunos allí ante antes aquel aquella aquí así aunque cada como
            cómo con cuando cuándo cuál de del desde después donde dónde durante e el él ella ellas ellos en
            entonces era es esa ese eso esta está estas este esto estos fue ha han hasta hay hoy la las le les
            lo los más me mi mientras muchas muchos muy nada ni no nos nosotros nuestra nuestro o otra otro para
            pero por porque pues que qué quién se según ser si sí sin sobre son su sus también tampoco te tengo
            todas todo todos tras tu tú un una unas unos usted y ya yo""",
    ),
    "nl": _row(
        never="""mrs dhr mevr mw hr dr drs ir ing mr prof ds st bijv b.v bv d.w.z dwz o.a oa m.b.t mbt i.p.v ipv
            t.a.v tav t.o.v tov i.v.m ivm a.u.b aub e.d v.h incl excl ca evt resp vgl jr sr max min m.n n.a.v
            d.m.v z.g zgn d.d""",
        before_numbers="""nr nrs art blz pag p pp hfdst fig afb tel vol jan feb mrt apr jun jul aug sep sept okt
            nov dec""",
        seldom="enz etc mln mld n.v b.v v.chr n.chr",
        starters="""aan al alle alleen als bij daar daarna daarom dan dat de deze die dit door dus echter een
            eerst en er geen haar heeft hem hen het hier hij hoe hun ik in is ja jij je jullie kan maar meer men
            met mijn na naar nee niet nog nu of om onder ons onze ook op over sinds soms te toch toen tot tussen
            u uit uw van veel volgens voor waar waarom wanneer want was wat we welke wie wij ze zij zijn zo
            zonder""",
    ),
    "pt": _row(
        never="""mr mrs sr sra srs sras srta dr dra drs dras prof profa eng arq gen cel cap av r pç d exmo exma
            ex p.ex vs cf aprox apto dep adm ltda st sto sta""",
        before_numbers="""n nº num núm art arts pág págs p pp cap caps fig figs vol vols tel jan fev mar abr mai
            jun jul ago set out nov dez""",
        seldom="etc cia s.a a.c d.c e.u.a",
        starters="""a ainda além algumas alguns antes ao aos após aquela aquele aqui as assim até cada com como
            da das de depois desde do dos durante e é ela elas ele eles em embora enquanto então era essa esse
            esta está este eu foi há hoje isso isto já lá mais mas me mesmo meu minha muitas muito muitos na nas
            não nem no nos nós nossa nosso o onde os ou para pela pelo pois por porque portanto qual quando
            quanto que quem se segundo sem ser seu seus sim só sobre sua suas também tem temos toda todas todo
            todos tu tudo um uma umas uns você vocês""",
    ),
    "ru": _row(
        never="ул пр просп пер пл наб им проф акад доц тов см ср напр др",
        before_numbers="рис табл стр гл разд тел д кв корп с",
        seldom="г гг в вв руб коп тыс млн млрд т.д т.п т.е т.к н.э",
        starters="""а без более больше был была были было в вот все всё вы где да для до его ещё её если есть за
            здесь и из или именно их к как какой когда кто ли мы мой на надо не нет но ну о об один однако он
            она они оно от по под после потом потому почему при с сам сегодня сейчас со так также там тем теперь
            то только тогда тут ты у уже хотя чем через что чтобы эта эти это этот я""",
    ),
}


def code(language: str | None) -> str:
    """The first part of a language's name: `de` of `de-AT`."""
    return (language or "").lower().replace("_", "-").split("-")[0]


@cache
def abbreviations(language: str | None) -> Abbreviations:
    """The row of a language such as `de` or `de-AT`; all rows together where it has none or is not known."""
    if row := _ROWS.get(code(language)):
        return row
    rows = _ROWS.values()
    return Abbreviations(
        never=frozenset().union(*(row.never for row in rows)),
        before_numbers=frozenset().union(*(row.before_numbers for row in rows)),
        seldom=frozenset().union(*(row.seldom for row in rows)),
        starters=frozenset().union(*(row.starters for row in rows)),
        endings=tuple(ending for row in rows for ending in row.endings),
    )
