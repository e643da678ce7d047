#!/bin/sh
# Runs "usher COMMAND" as root with the settings and secrets of the units. docs/operations/deploying.md says how to install it.
# Reads the values as systemd does, without evaluating them. Neither a backslash nor a second line is possible in a value.
# A file that cannot be read ends the script: without settings the command would run as in a sandbox.
set -e
while read -r line || [ -n "$line" ]; do
  # A file of Windows has a carriage return at the end of each line.
  line=${line%"${line##*[![:space:]]}"}
  case $line in [A-Za-z_]*=*) ;; *) continue ;; esac
  # Both without the blanks around the first `=`.
  name=${line%%=*} value=${line#*=}
  name=${name%"${name##*[![:space:]]}"}
  case $name in *[!A-Za-z0-9_]*) continue ;; esac
  value=${value#"${value%%[![:space:]]*}"}
  case $value in
    \"*\") value=${value#?} value=${value%?} ;;
    \'*\') value=${value#?} value=${value%?} ;;
  esac
  export "$name=$value"
done </etc/usher/usher.env
set -a
DATABASE_URL_FILE=/etc/usher/database-url
QUEUE_URL_FILE=/etc/usher/queue-url
USHER_MASTER_KEYS_FILE=/etc/usher/master-keys
OPS_PASSWORD_FILE=/etc/usher/ops-password
INTERNAL_PASSWORD_FILE=/etc/usher/internal-password
METRICS_PASSWORD_FILE=/etc/usher/metrics-password
# Without a mail server remove this line.
SMTP_URL_FILE=/etc/usher/smtp-url
set +a
exec /usr/bin/node /opt/usher/bin/usher.mjs "$@"
