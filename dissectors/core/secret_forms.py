"""Forms in which systems write secrets beside a name: pairs, header fields, URLs, command lines, files of credentials.

In: nothing. Out: which names stand for secrets, the quick check, and the patterns; `hidden` is the secret in each.
Every repetition is bounded, so a text costs no more than its length.
Sources: RFC 3986 3.2.1 (user information), RFC 6749, 6750 and 7617 (OAuth, Bearer, Basic), RFC 6265 (cookies), RFC 7517
(JWK), RFC 5802 (SCRAM), libpq (.pgpass), netrc(5), the manuals of mysql, curl, redis-cli, ldapsearch, mosquitto_pub.
"""

from __future__ import annotations

import re
from functools import cache

# Longer ones are cut there by the patterns; what follows stays.
VALUE = 2048
_LONG = 8 * VALUE
NAME_WORDS = (
    r"passw|passphrase|passcode|secret|jaas|credential|auth[._-]?(?:header|token|key)|authorization|user[._]info|"
    r"userinfo|(?:api|app|access|account|private|shared|signing|encryption|client|sas|stored|server|session|master)"
    r"[._-]?key|cookie|connection[._-]?string"
)
# The last letters of a word of the name: ssl.keystore.key, apiKey, ssl.truststore.certificates; not ...key.type.
LAST_WORDS = r"key|token|pwd|jwt|certificates?|certificate\.chain"
_SHORT = r"(?<![a-z])(?:(?:user[._-]?)?pass|pw|psk|otp|pin|sig|_auth|rediscli_auth|requirepass|masterauth)(?![a-z])"
_SIGNED = r"pwd|token|jwt|signature|x-amz-(?:security-token|signature|credential)"
_PAIR = rf"(?:{NAME_WORDS}|{_SIGNED}|{_SHORT})[\w.-]{{0,32}}"
_LONGEST = rf"{{1,{VALUE}}}"
# A value that is no word of a sentence.
_ODD = r"(?=[^\s,;]{0,64}(?:[\d=+/!@#$%^*~]|(?-i:[a-z][A-Z])))"
_MIXED = r"(?=[^\s\"'`]{0,64}\d)(?=[^\s\"'`]{0,64}[a-z])(?!scram-|sha-?\d|aes\d|rsa\d|tls|utf)"
_NO_PORT = r"(?![\d.:]+(?:/\w+)?(?:\s|$))"

# Something of this stands in every text that holds a secret by its name; nearly all texts have nothing and are done. It
# looks neither ahead nor behind, so that Arrow (RE2) takes it too.
WORDS = (
    rf"(?i:://[^\s/:@]*:|{NAME_WORDS}|(?:(?:{_SIGNED}|pass|pw|psk|otp|pin|sig|_auth|session)"
    rf"[\w.-]{{0,32}}|sid)\\*[\"'`]?\s*"
    r"(?:[=:,%]|=>)|(?:pwd|token|pass|auth|requirepass|masterauth|-p|-u|-w|-a|--user|--proxy-user)\s|\s-p[^\s-]|"
    r"(?:bearer|basic|negotiate|apikey|digest|token|apitoken|splunk) [\w.~+/-]{6}|hooks\.slack\.com/|/api/webhooks/|"
    r"webhook\.office|<[^<>]{0,128}(?:pass|pwd|token)|jdbc:oracle:|sqlplus|private key|private-lines|"
    r"invalid value |identified |[?&][a-z_]{0,8}code[a-z_]{0,9}=|saml|assertion|,[nrsp]=|[pv]=[a-z0-9+/]{27}|"
    r"[\"'](?:d[pq]?|p|qi?|k)\\*[\"']\s?:|:(?:\d{2,5}|\*):[\w*.-]+:[\w*.-]+:)"
)
_PATTERNS = (
    # {{"password": "x"}}, ["password", "x"], password='x'
    ("", rf"{_PAIR}[\"'`]?\s{{0,4}}(?:[=:,]|=>|:=)\s{{0,4}}(?P<quote>[\"'`])"
     rf"(?P<hidden>(?:(?!(?P=quote))[^\\]|\\[\s\S]){_LONGEST})"),
    # the same inside a text that is quoted itself, once or more often
    ("\\", rf"{_PAIR}\\{{0,15}}[\"']?\s{{0,4}}[=:,]\s{{0,4}}\\{{1,15}}[\"'](?P<hidden>[^\"'\\]{_LONGEST})"),
    # password=x, up to what ends a value in URLs, JDBC and lists; password={x} (ODBC)
    ("=", rf"{_PAIR}\s{{0,4}}=\s{{0,4}}(?P<hidden>[^\s&;,\"'][^\s&;,\"'()\[\]{{}}]{{0,{VALUE}}})"),
    ("{", rf"{_PAIR}\s{{0,4}}=\s{{0,4}}\{{(?P<hidden>[^}}]{_LONGEST})\}}"),
    # token: x, userPassword:: x, where x is no word of a sentence
    (":", rf"{_PAIR}[\"']?\s{{0,4}}::?\s{{0,4}}(?P<hidden>{_ODD}[^\s&;,\"'()\[\]{{}}]{{6,{VALUE}}})"),
    # password%3Dx, %22password%22%3A%22x%22, encoded again too
    ("%", rf"{_PAIR}(?:%(?:25){{0,3}}(?:5C|22|27|20)){{0,4}}"
     rf"(?:%(?:25){{0,3}}(?:3D|3A|2C)|=)(?:%(?:25){{0,3}}(?:5C|22|27|20)){{0,4}}"
     rf"(?P<hidden>(?:[^\s&;,\"'%]|%(?!(?:25){{0,3}}(?:22|27|26|3B|2C|7D|5C))){_LONGEST})"),
    # <password>x</password>, <key name="password" value="x"/>, {{"name": "password", "value": "x"}}
    ("<", rf"<[\w.:-]{{0,64}}(?:{NAME_WORDS}|{_SIGNED}|pass)[\w.:-]{{0,32}}"
     rf"(?:\s[^<>]{{0,256}})?>\s{{0,8}}(?:<!\[CDATA\[)?"
     rf"(?P<hidden>[^<\s][^<]{{0,{VALUE}}})"),
    ("value", rf"{_PAIR}\\{{0,7}}[\"']\s{{0,4}},?\s{{0,4}}\\{{0,7}}[\"']?value\\{{0,7}}[\"']?"
     rf"\s{{0,4}}[=:]\s{{0,4}}\\{{0,7}}[\"']"
     rf"(?P<hidden>[^\"'\\]{_LONGEST})"),
    # password x, where x has letters and digits; login a password x (netrc)
    ("", rf"{_PAIR}\s{{1,4}}(?:(?:is|was)\s)?[\"'`]?(?P<hidden>{_MIXED}[^\s\"'`,;()]{{6,{VALUE}}})"),
    ("login", rf"\blogin\s{{1,4}}\S{{1,128}}\s{{1,4}}password\s{{1,4}}(?P<hidden>\S{_LONGEST})"),
    # host:port:database:user:password (.pgpass), but for addresses of IPv6
    (":", rf"(?<![\w.*-])(?:[\w.-]{{0,64}}[g-z*-][\w.-]{{0,64}}:(?:\d{{2,5}}|\*)|[\w.-]{{1,128}}:54\d\d)"
     rf":[\w*.-]{{1,64}}:[\w*.-]{{1,64}}:(?P<hidden>\S{_LONGEST})"),
    # Authorization: Bearer x
    (" ", rf"\b(?:bearer|basic|negotiate|apikey|digest|token|apitoken|splunk) "
     rf"(?P<hidden>(?=[\w.~+/-]{{0,256}}(?-i:[\d=A-Z]))[\w.~+/-]{{6,{VALUE}}}={{0,2}})"),
    # a field of cookies with all of them; ids of sessions elsewhere
    ("cookie", rf"\b(?:set-)?cookie2?\\{{0,7}}[\"']?\s{{0,4}}[:=,]\s{{0,4}}\\{{0,7}}[\"']?"
     rf"(?P<hidden>[^\r\n\"'\\]{_LONGEST})"),
    ("", r"(?<![a-z])(?:phpsessid|jsessionid|asp\.net_sessionid|connect\.sid|"
     r"sess(?:ion)?(?:[._-]?(?:id|key|token))?|sid)"
     r"\\{0,7}[\"']?\s?(?:=|:|%3d)\s?\\{0,7}[\"']?(?P<hidden>(?=[\w.+/%~-]{0,128}[a-z])(?=[\w.+/%~-]{0,128}\d)"
     rf"[\w.+/%~-]{{12,{VALUE}}})"),
    # --password x, -p x, -u user:x, mysql -px, redis-cli -a x
    ("-", rf"(?<![\w-])--?[\w-]{{0,32}}(?:{NAME_WORDS}|{_SIGNED}|pass)"
     rf"(?![\w-]{{0,32}}(?:file|type|stdin|path|env|prompt))[\w-]{{0,32}}"
     rf"\s{{1,4}}[\"']?(?P<hidden>[^\s\"'-][^\s\"']{{0,{VALUE}}})"),
    ("-p", rf"(?<![\w-])-p\s{{1,4}}[\"']?(?P<hidden>{_NO_PORT}{_MIXED}[^\s\"'/.][^\s\"']{{3,{VALUE}}})"),
    ("-u", rf"(?<![\w-])(?:-u|--user|--proxy-user)(?:\s{{0,4}}|=)[\"']?[^\s:\"']{{0,128}}:(?!//)"
     rf"(?P<hidden>[^\s\"']{_LONGEST})"),
    ("-p", rf"\b(?:mysql|maria|mongo|mosquitto_|sqlcmd|bcp|sshpass|docker|podman|helm|az|influx)"
     rf"[\w-]{{0,16}}\s[^\r\n]{{0,256}}?"
     rf"(?<![\w-])-p\s{{0,4}}[\"']?(?P<hidden>{_NO_PORT}[^\s\"'-][^\s\"']{{0,{VALUE}}})"),
    ("-", rf"\b(?:redis-cli|ldap\w{{1,16}})\s[^\r\n]{{0,256}}?(?<![\w-])-[aw]\s{{0,4}}[\"']?"
     rf"(?P<hidden>[^\s\"'-][^\s\"']{{0,{VALUE}}})"),
    ("pass:", rf"\bpass:(?P<hidden>\S{_LONGEST})"),
    ("", rf"(?<![\w-])(?:auth|requirepass|masterauth)\s{{1,4}}(?:[\w-]{{1,64}}\s{{1,4}})?[\"']?"
     rf"(?P<hidden>{_MIXED}[^\s\"']{{6,{VALUE}}})"),
    # CREATE USER a IDENTIFIED BY 'x', ALTER ROLE a WITH PASSWORD 'x' (SQL)
    (" ", rf"\b(?:(?:user|to)\s[^;]{{1,128}}?\sidentified "
     rf"(?:with [\w\"'`]{{1,64}} )?(?:by|as) (?:password )?|password )"
     rf"(?P<mark>[\"'])(?P<hidden>[^\"'\\]{_LONGEST})"),
    # jdbc:oracle:thin:user/x@//host, which has no name and no :// in front (Oracle JDBC developer's guide)
    ("@", rf"(?:jdbc:oracle:[a-z]{{1,16}}:|\bsqlplus\s{{1,4}}(?:-\w{{1,8}}\s{{1,4}}){{0,4}})[^\s/@]{{1,128}}/"
     rf"(?P<hidden>[^\s@]{_LONGEST}+)@"),
    # who knows the address may post
    ("/", r"(?:hooks\.slack\.com/[a-z]{1,16}|discord(?:app)?\.com/api/webhooks/\d{1,32}|"
     r"webhook\.office(?:365)?\.com)/"
     r"(?P<hidden>[\w/@-]{8,512})"),
    # ?code=x (OAuth), SAML
    ("=", rf"[?&](?:code|device_code|user_code|code_verifier|ticket)=(?P<hidden>[^\s&;\"'#]{{6,{VALUE}}})"),
    ("", rf"(?:saml(?:response|request)|assertion)\\{{0,7}}[\"']?\s?[=:]\s?\\{{0,7}}[\"']?"
     rf"(?P<hidden>[\w+/=%.-]{{16,{_LONG}}})"),
    ("<", rf"<(?:[\w-]{{1,32}}:)?(?:assertion|response)(?:\s[^>]{{0,1024}})?>(?P<hidden>[\s\S]{{1,{_LONG}}})"),
    # {{"kty": "RSA", "d": "x"}}
    (":", rf"[\"'](?:d[pq]?|p|qi?|k)\\{{0,7}}[\"']\s?:\s?\\{{0,7}}[\"'](?P<hidden>[\w-]{{20,{VALUE}}})"),
    # n,,n=user,r=x and what follows
    ("n,", r"\bn,(?:a=[^,]{0,256})?,n=(?P<hidden>[^,\s]{1,256},r=[^,\s]{1,256})"),
    ("r=", r"\br=(?P<hidden>[^,\s]{8,256},[sp]=[\w+/=]{8,256})"),
    ("=", r"\b[pv]=(?P<hidden>[a-z0-9+/]{27,88}={1,2})"),
    # on one line too, its ends of lines written as \\n
    ("private key", rf"-----BEGIN [A-Z ]{{0,32}}PRIVATE KEY(?: BLOCK)?-----(?P<hidden>[^-]{{1,{_LONG}}})"),
    ("private-lines", rf"private-lines: ?\d{{1,4}}+(?P<hidden>[\w+/=\r\n\\]{{1,{_LONG}}})"),
)  # fmt: skip


@cache
def patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Each pattern, behind what stands in every text that it fits, in lower case: to look for that costs next to
    nothing. They are compiled for the first text that may hold a secret."""
    return tuple((needle, re.compile(pattern, re.IGNORECASE)) for needle, pattern in _PATTERNS)
