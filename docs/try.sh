# Prepares a shell for the commands of the documents. In a checkout, after `npm ci`:  . docs/try.sh
#
# It starts a sandbox unless one answers at AUTH_URL, creates a client unless CLIENT_ID names one, starts `usher listen` as its
# receiver unless NOTIFY_URL names one, and requests a token. It sets AUTH_URL, CLIENT_ID, CLIENT_SECRET, NOTIFY_URL and TOKEN,
# and the functions `usher`, `json` and `json_field`. Sourced again, it uses what is there and requests another token. In bash,
# what it starts ends with:  kill $(jobs -p)

usher() { npm run -s usher -- "$@"; }

# The value of a field of the text that a command prints.
text_field() { sed -n "s/^ *$1  *//p"; }

# wait_for NAME PID LOG COMMAND: until the command succeeds, for a minute at most, and while the process runs.
wait_for() {
  for _ in $(seq 60); do
    if eval "$4" > /dev/null 2>&1; then return 0; fi
    kill -0 "$2" 2> /dev/null || break
    sleep 1
  done
  echo "$1 is not ready. The last lines of $3:"
  tail -n 5 "$3"
  return 1
}

start_usher() {
  export AUTH_URL="${AUTH_URL:-http://127.0.0.1:${PORT:-3000}}"
  # Of a service that runs already, this shell waits for the answer alone.
  started=$$
  if ! curl -s "$AUTH_URL/health/live" > /dev/null; then
    npm start > usher.log 2>&1 &
    started=$!
    echo "Starting Usher at $AUTH_URL; its log is usher.log. The first start takes some seconds."
  fi
  wait_for "Usher at $AUTH_URL" "$started" usher.log 'curl -sf "$AUTH_URL/health/ready"'
}

create_client() {
  [ -z "$CLIENT_ID" ] || return 0
  created=$(usher client create --name "Documents" --notify-url "${NOTIFY_URL:-http://127.0.0.1:4000/notify}") || return
  export CLIENT_ID="$(echo "$created" | text_field client_id)" CLIENT_SECRET="$(echo "$created" | text_field client_secret)"
}

stop_receiver() {
  [ -n "$RECEIVER" ] || return 0
  kill "$RECEIVER"
  RECEIVER= NOTIFY_URL=
}

start_receiver() {
  [ -z "$NOTIFY_URL" ] || return 0
  npm run -s usher -- listen --port 0 > usher-listen.log 2>&1 &
  RECEIVER=$!
  wait_for "The receiver" $RECEIVER usher-listen.log 'grep Listening usher-listen.log' || return
  export NOTIFY_URL="$(sed -n 's/^Listening at \([^;]*\);.*/\1/p' usher-listen.log)/notify"
  usher client set-notify-url "$CLIENT_ID" "$NOTIFY_URL" > /dev/null
}

start_usher && create_client && start_receiver && . docs/shell.sh &&
  echo "Client $CLIENT_ID at $AUTH_URL; its notifications arrive at $NOTIFY_URL."
