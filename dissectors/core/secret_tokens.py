"""Tokens that are secrets by their form, wherever they stand: how each begins, and how it goes on.

In: nothing. Out: a row for each kind of token, from which `secrets.py` makes the quick check and the patterns. A new
kind is a line here, and a text in the list that tests plant everywhere.
Sources: the providers' own pages on the forms of their tokens, the rules of gitleaks and detect-secrets for the same;
RFC 7519 (JWT), RFC 7468 (PEM), RFC 5802 and 7677 (SCRAM), crypt(5) (hashes of passwords).
"""

from __future__ import annotations

# How it begins (no look-around and nothing unbounded: Arrow takes it too), and how it goes on behind that. Upper and
# lower case differ. A letter or digit directly in front makes it part of another word.
TOKENS: tuple[tuple[str, str], ...] = (
    # clouds and hosting
    (r"A3T[A-Z0-9]|A(?:KI|SI|BI|CC)A", r"[A-Z0-9]{16}\b"),  # AWS
    (r"AIza", r"[\w-]{35}"), (r"GOCSPX-", r"[\w-]{20,64}"), (r"ya29\.", r"[\w.-]{20,2048}"),  # Google
    (r"1//0", r"[\w-]{20,512}"),
    (r"[\w.~-]{3}\dQ~", r"[\w.~-]{31,34}"), (r"AccountKey=", r"[\w+/=]{20,128}"),  # Azure
    (r"LTAI", r"[A-Za-z0-9]{12,24}"), (r"AKID", r"[A-Za-z0-9]{28,40}"),  # Alibaba, Tencent
    (r"do[opr]_v1_", r"[0-9a-f]{32,128}"), (r"HRKU-", r"[\w-]{30,128}"),  # DigitalOcean, Heroku
    (r"fo1_|fm[12][a-z]?_", r"[\w=+/,-]{32,2048}"), (r"nfp_|rnd_", r"[A-Za-z0-9]{24,64}"),  # Fly, Netlify, Render
    (r"pscale_(?:tkn|pw|oauth)_", r"[\w=.-]{24,128}"), (r"sbp_|sb_secret_", r"[\w-]{20,128}"),
    (r"AVNS_", r"[\w-]{12,64}"), (r"tskey-", r"[\w-]{12,128}"), (r"v1\.0-", r"[0-9a-f]{24}-[0-9a-f]{40,256}"),
    (r"mdb_sa_sk_", r"[\w-]{16,128}"), (r"cflt", r"[A-Za-z0-9+/]{56,64}"),  # MongoDB Atlas, Confluent Cloud
    (r"dapi", r"[0-9a-f]{32}(?:-\d)?"), (r"dt0[a-z]\d\d\.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),  # Databricks, Dynatrace
    # code and packages
    (r"gh[pousr]_", r"[A-Za-z0-9]{20,255}"), (r"github_pat_", r"\w{20,255}"),
    (r"gl(?:pat|dt|cbt|ptt|ft|imt|agent|oas|rt|soat|ffct|wt)-", r"[\w.-]{20,255}"), (r"GR1348941", r"[\w-]{20,64}"),
    (r"ATATT3|ATCTT3|ATBB", r"[\w=-]{24,255}"), (r"npm_", r"[A-Za-z0-9]{36}"), (r"pypi-", r"[\w-]{16,512}"),
    (r"dckr_pat_|dckr_oat_", r"[\w-]{20,64}"), (r"rubygems_", r"[0-9a-f]{48}"), (r"CLOJARS_", r"[a-z0-9]{60}"),
    (r"oy2", r"[a-z0-9]{43}"), (r"cio", r"[A-Za-z0-9]{32}\b"), (r"AKCp", r"[A-Za-z0-9]{60,80}"),
    (r"sgp_", r"[\w-]{36,128}"), (r"sq[apu]_", r"[0-9a-f]{40}"), (r"pul-", r"[0-9a-f]{40}"),
    (r"bkua_", r"[0-9a-f]{40}"), (r"polar_[a-z]{2,4}_", r"\w{24,128}"), (r"sntry[su]_", r"[\w+/=-]{32,512}"),
    # messages
    (r"xox[a-z](?:\.xox[a-z])?-|xapp-|xwfp-", r"[\w-]{10,255}"), (r"SG\.", r"[\w-]{16,64}\.[\w-]{16,128}"),
    (r"(?:SK|AC)[0-9a-f]", r"[0-9a-f]{31}\b"), (r"key-|pubkey-", r"[0-9a-f]{32}\b"),  # Twilio, Mailgun
    (r"[0-9a-f]{32}-us\d", r"\d?\b"), (r"xkeysib-", r"[\w-]{32,128}"),  # Mailchimp, Brevo
    (r"[MNO][\w-]{23,27}\.[\w-]{6}\.", r"[\w-]{27,64}"),  # Discord
    (r"\d{5,16}:[A-Za-z]", r"[\w-]{34}(?![\w-])"),  # Telegram
    # money
    (r"(?:[rsp]k|rsa)_(?:live|test|prod)_", r"[0-9A-Za-z]{16,255}"), (r"whsec_", r"[\w+/=]{20,128}"),
    (r"shp(?:at|ca|pa|ss|ua|tka)_", r"[0-9A-Fa-f]{32}"), (r"sq0[a-z]{3}-", r"[\w-]{20,64}"), (r"EAAA", r"[\w-]{60}"),
    (r"access-(?:sandbox|development|production)-", r"[0-9a-f-]{36}"), (r"EZ[AT]K", r"[A-Za-z0-9]{54}"),
    (r"FLWSECK(?:_TEST)?-", r"[\w-]{12,64}"), (r"shippo_(?:live|test)_|duffel_(?:live|test)_", r"[\w=-]{32,64}"),
    # operations
    (r"NR(?:AK|II|JS|AA|RA|SP)-", r"[\w-]{16,64}"), (r"gl(?:sa|c)_", r"[\w+/=-]{20,512}"),  # New Relic, Grafana
    (r"hv[sbr]\.|s\.[A-Za-z0-9]{4}", r"[\w-]{20,512}"),  # HashiCorp Vault
    (r"[A-Za-z0-9]{14}\.atlasv1\.", r"[\w-]{24,128}"), (r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"[\w.-]{20,128}"),
    (r"sha256~", r"[\w-]{43}"), (r"ops_eyJ", r"[\w+/=-]{20,2048}"),  # OpenShift, 1Password
    (r"A3-[A-Z0-9]{6}-", r"[A-Z0-9-]{20,40}"), (r"API-[A-Z0-9]{4}", r"[A-Z0-9]{22,28}\b"),
    (r"p8e-", r"[A-Za-z0-9]{32}"),
    (r"essu_", r"[\w=+/-]{20,128}"), (r"ddp_|ddapp_", r"[A-Za-z0-9]{24,64}"),
    (r"(?:sdk|api|mob)-[0-9a-f]{8}-", r"[0-9a-f-]{27}"),
    # work and models
    (r"lin_(?:api|oauth)_", r"[A-Za-z0-9]{20,128}"), (r"PMAK-", r"[\w-]{24,128}"), (r"ntn_", r"[A-Za-z0-9]{32,64}"),
    (r"secret_[A-Za-z0-9]{4}", r"[A-Za-z0-9]{36,40}\b"), (r"pat[A-Za-z0-9]{14}\.", r"[0-9a-f]{40,64}"),
    (r"fig[dou]r?h?_", r"[\w-]{32,128}"), (r"CFPAT-", r"[\w-]{32,64}"), (r"ico-", r"[A-Za-z0-9]{32}\b"),
    (r"sk-(?:proj|svcacct|admin|ant|or|lf)-", r"[\w-]{16,255}"), (r"sk-[A-Za-z0-9]{4}", r"[A-Za-z0-9]{24,64}\b"),
    (r"hf_|api_org_", r"[A-Za-z]{20,64}"), (r"r8_|gsk_|pplx-|xai-|nvapi-", r"[\w-]{32,128}"),
    (r"lsv2_(?:pt|sk)_", r"\w{32,64}"), (r"tfp_|pnu_|rdme_", r"[\w-]{32,128}"),
    # keys, and what is made of passwords
    (r"AGE-SECRET-KEY-1", r"[A-Z0-9]{20,64}"), (r"b3BlbnNzaC1rZXktdjE", r"[A-Za-z0-9+/=\\\s]{0,16384}"),
    (r"\$(?:2[abxy]|[1567y]|apr1|sha1|gy|argon2(?:id?|d)|scrypt|pbkdf2[\w-]{0,16})\$", r"[\w./$,=+-]{8,512}"),
    (r"\{(?:SSHA|SHA|SMD5|MD5|CRYPT|PBKDF2)[\d_A-Z-]{0,12}\}", r"[\w./$+=-]{8,255}"),
    (r"pbkdf2_sha|bcrypt_sha|scrypt:", r"[\w:$./+=-]{16,255}"), (r"SCRAM-SHA-(?:1|256|512)\$", r"[\w:$./+=-]{16,512}"),
    # texts that begin with {" or with a name, in base64
    (r"eyJ[\w+/-]{3}", r"[\w+/-]{3,2048}={0,2}(?:\.[\w-]{0,2048}){0,4}"),
    (r"PHNhbW|PD94bW", r"[\w+/=%-]{24,8192}"), (r"cGFzc3dvcm|UEFTU1dPUk|c2VjcmV0", r"[\w+/=-]{4,2048}"),
    (r"biwsbj|biwsYT|Yz1iaX", r"[\w+/=]{8,2048}"),
)  # fmt: skip
START = "|".join(start for start, _ in TOKENS)
WHOLE = r"(?<![A-Za-z0-9])(?:" + "|".join(f"(?:{start}){rest}" for start, rest in TOKENS) + ")"
