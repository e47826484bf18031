"""Programs that people know by name, and whether they are written in Go.

The names are process names as the kernel prints them, and names of units. Names of a family end in
a version, a number or another word (`python3.11`, `postgres: walwriter`, `soffice.bin`), which is
left out. A name that a service may also have (`api`, `worker`, `server`) is not listed, nor one of
a container with Go in it (`istio-proxy` runs pilot-agent next to envoy).
"""

from __future__ import annotations

import re

_COMM_BYTES = 15
"""TASK_COMM_LEN of the kernel without its last zero: longer names are truncated."""


def _names(text: str) -> frozenset[str]:
    return frozenset(name[:_COMM_BYTES] for name in text.lower().split())


_NOT_GO = _names(
    """
    python ipython pypy java node nodejs deno bun ruby irb rails puma unicorn sidekiq perl php
    php-fpm php-cgi lua luajit erl beam elixir dotnet mono mono-sgen ghc runghc julia rscript
    octave matlab swift kotlin scala sbt gradle mvn clojure guile racket tclsh uwsgi gunicorn
    uvicorn celery jupyter jupyter-lab jupyter-notebook ipykernel_launcher bash sh dash zsh fish ksh
    tcsh csh busybox sshd ssh scp sftp sftp-server login su sudo cron crond atd agetty getty
    tmux screen mosh-server awk gawk mawk sed grep egrep rg cat cp mv rm dd ls ln du df find
    xargs sort uniq wc tee head tail cut tr split paste join comm shuf base64 md5sum sha1sum
    sha256sum sha512sum cksum diff patch touch mkdir chmod chown sleep timeout env nohup stress
    stress-ng top htop ps vi vim nvim emacs nano strace gdb lsof tar gzip pigz gunzip bzip2
    pbzip2 xz unxz zstd lz4 zip unzip 7z 7za 7zr rar unrar cpio rsync curl wget aria2c openssl
    gpg gpg-agent dpkg apt apt-get apt-check aptitude unattended-upgr unattended-upgrade
    update-manager packagekitd rpm yum dnf zypper apk pacman updatedb mlocate mandb fwupd
    fwupdmgr gcc g++ cc c++ cpp cc1 cc1plus cc1obj clang clang++ clangd rustc rustdoc cargo
    rust-analyzer ld ld.lld lld ld.gold mold as ar collect2 lto1 lto-wrapper make gmake cmake
    ctest ninja meson bazel ccache javac swiftc npm npx yarn pnpm webpack eslint
    vite vitest jest git git-remote-http git-upload-pack git-index-pack svn hg postgres postmaster
    postgresql pgbouncer mysqld mysql mysqldump mariadbd mariadb mongod mongos redis-server
    redis-sentinel redis-cli redis valkey-server keydb-server memcached sqlite3 clickhouse
    clickhouse-server clickhouse-serv elasticsearch opensearch cassandra kafka zookeeper
    rabbitmq-server couchdb neo4j slapd pg_dump pg_restore nginx httpd apache2 apache lighttpd
    haproxy varnishd varnish squid envoy unbound named dnsmasq bind9 pdns_server postfix
    exim exim4 sendmail dovecot opendkim spamd rspamd clamscan clamd clamdscan freshclam
    clamav-daemon mosquitto fluent-bit td-agent fluentd logstash rsyslogd syslog-ng collectd
    snmpd zabbix_server zabbix_agentd nagios convert magick mogrify montage gm vips
    vipsthumbnail gs ghostscript gsc pdftotext pdftoppm pdftocairo pdftk qpdf mutool inkscape
    wkhtmltopdf wkhtmltoimage weasyprint phantomjs soffice libreoffice unoconv oosplash
    tesseract ocrmypdf pandoc latex pdflatex xelatex lualatex exiftool cwebp avifenc cjpeg djpeg
    optipng pngquant jpegoptim rsvg-convert blender gimp ffmpeg ffprobe ffplay sox lame mplayer
    mpv vlc gst-launch-1.0 handbrakecli youtube-dl yt-dlp mediainfo x264 x265 chrome chromium
    chromium-browser google-chrome chrome_crashpad_handler chromedriver firefox firefox-bin
    geckodriver geckomain thunderbird webkitwebprocess electron code xorg xwayland gnome-shell
    gnome-software kwin_x11 kwin_wayland plasmashell mutter nautilus tracker-miner-fs
    tracker-extract baloo_file gdm gdm3 lightdm sddm pulseaudio pipewire wireplumber dbus-daemon
    dbus-broker polkitd networkmanager avahi-daemon cups-browsed cupsd udisksd accounts-daemon
    systemd udevd supervisord s6-supervise runit runsv tini dumb-init multipathd irqbalance
    auditd chronyd ntpd lvmetad mdadm kworker kswapd0 ksmd khugepaged qemu qemu-kvm kvm vmtoolsd
    virtqemud libvirtd virtlogd lxcfs crun conmon smbd nmbd winbindd nfsd rpcbind mount.nfs
    glusterfsd glusterfs ceph-osd ceph-mon ceph-mgr ceph-mds zfs zpool minecraft bedrock_server
    earlyoom nohang wine wineserver bitcoind monerod litecoind solana-validator tor transmission-da
    qbittorrent-nox deluged pgpool pt_main_thread oracle tnslsnr
    """
)
ROLES = _names("node code convert login patch split join find sort make screen head named tor")
"""Names of programs that containers have for what they do, whatever runs in them."""

_OF_FAMILY = re.compile(
    r"(?:git-\w+|qemu-\S+|systemd-\S+|x86_64-\S+-(?:gcc|g\+\+|ld)|node-mainthre\w*|php\d\S*|gst-\S+|"
    r"cc1\w*|ceph-\w+|(?:dbus|gnome|kde|xfce4|gvfs|gsd)-\S+|kworker/\S+|ksoftirqd/\S+)"
)
"""Families whose members have their own names."""

_GO = re.compile(
    r"(?:etcd|prometheus|alertmanager|node_exporter|grafana(?:-server)?|loki|tempo|mimir|promtail|"
    r"thanos|cortex|telegraf|influxd|victoria-metric\w*|vmagent|otelcol\S*|jaeger\S*|"
    r"kube(?:let|-proxy|-apiserver|-controller\S*|-scheduler|ctl|-state-metr(?:ics)?)|k3s\S*|k0s|"
    r"rke2|containerd\S*|"
    r"dockerd?|docker-proxy|runc|crio|podman|buildkitd|helm|argocd\S*|coredns|flanneld|calico-node|"
    r"cilium\S*|caddy|traefik|consul\S*|vault|nomad|terraform\S*|packer|cockroach|minio|tidb-server|"
    r"pd-server|dgraph|weaviate|milvus|nats-server|nsqd|gitea|forgejo|gogs|drone\S*|act_runner|"
    r"gitlab-runner|gitaly|hugo|syncthing|rclone|restic|geth|bor|erigon|lnd|btcd|ipfs|kubo|"
    r"tailscaled|cloudflared|frp[cs]|xray|v2ray|sing-box|adguardhome|portainer|snapd|lxd|incusd|"
    r"gopls|golangci-lint?|git-lfs|amazon-ssm-agent?|ssm-agent-worke\w*)",
    re.IGNORECASE,
)

_RELEASE = re.compile(r"[@.:]|[-_](?:linux|darwin|windows|amd64|arm64)")
"""Suffix of a program's name in that of a unit, a process or a release file."""

_VERSION = re.compile(r"-?(?<!\d)\d+$")


def is_go(name: str | None) -> bool:
    """Returns whether a program is a well-known one that is written in Go.

    >>> is_go("prometheus"), is_go("telegraf.service"), is_go("api")
    (True, True, False)
    """
    return _GO.fullmatch(_RELEASE.split(name or "")[0]) is not None


def is_not_go(name: str | None) -> bool:
    """Returns whether a program is a well-known one that is not written in Go.

    >>> is_not_go("python3.11"), is_not_go("soffice.bin"), is_not_go("api")
    (True, True, False)
    >>> is_not_go("unattended-upgr"), is_not_go("postgresql@14-main.service")
    (True, True)
    >>> is_not_go("envoy"), is_not_go("istio-proxy")
    (True, False)
    """
    whole = (name or "").lower()
    stem = _RELEASE.split(whole)[0]
    shown = {whole, stem, _VERSION.sub("", stem)}
    if is_go(whole):
        return False
    is_script = whole.endswith((".py", ".rb", ".pl", ".js", ".sh", ".php", ".jar"))
    return is_script or not shown.isdisjoint(_NOT_GO) or _OF_FAMILY.fullmatch(stem) is not None
