# Prepares a shell for the commands of the documents. In a checkout, after `npm ci`:  . docs/try.sh
#
# It starts a sandbox unless one answers at AUTH_URL, creates a client, starts `usher listen` as its receiver unless
# NOTIFY_URL names one, and requests a token. It sets AUTH_URL, CLIENT_ID, CLIENT_SECRET, NOTIFY_URL and TOKEN, and the
# functions `usher` and those of shell.sh. What runs already is used again. In bash, what it starts ends with:
#   kill $(jobs -p)

usher() { npm run -s usher -- "$@"; }

# The value of a field of the text that a command prints.
text_field() { sed -n "s/^ *$1  *//p"; }

# Waits for a line of a log, for at most a minute, and as long as the process that writes it runs.
wait_for() {
  for _ in $(seq 60); do
    if eval "$2" > /dev/null 2>&1; then return 0; fi
    kill -0 "$3" 2> /dev/null || break
    sleep 1
  done
  echo "$1 did not start. Its log, $4, ends with:"
  tail -n 5 "$4"
  return 1
}

start_usher() {
  curl -s "$AUTH_URL/health/live" > /dev/null && return
  npm start > usher.log 2>&1 &
  echo "Starting Usher at $AUTH_URL; its log is usher.log. The first start takes some seconds."
  wait_for Usher 'curl -sf "$AUTH_URL/health/ready"' $! usher.log
}

create_client() {
  created=$(usher client create --name "Documents" --notify-url "${NOTIFY_URL:-http://127.0.0.1:4000/notify}") || return
  export CLIENT_ID="$(echo "$created" | text_field client_id)"
  export CLIENT_SECRET="$(echo "$created" | text_field client_secret)"
}
