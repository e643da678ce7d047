# Prepares a shell for the commands of the documents. In a checkout, after `npm ci`:  . docs/try.sh
#
# It starts a sandbox unless one answers at AUTH_URL, creates a client, starts `usher listen` as its receiver unless
# NOTIFY_URL names one, and requests a token. It sets AUTH_URL, CLIENT_ID, CLIENT_SECRET, NOTIFY_URL and TOKEN, and the
# function `usher`. In bash, what it starts ends with:  kill $(jobs -p)

usher() { npm run -s usher -- "$@"; }

# The value of a field: of JSON, and of the text that a command prints.
json_field() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p"; }
text_field() { sed -n "s/^ *$1  *//p"; }

export AUTH_URL="${AUTH_URL:-http://127.0.0.1:3000}"
if ! curl -sf "$AUTH_URL/health/live" > /dev/null; then
  npm start > usher.log 2>&1 &
  echo "Starting Usher at $AUTH_URL; its log is usher.log. The first start takes some seconds."
  until curl -sf "$AUTH_URL/health/ready" > /dev/null; do
    kill -0 $! 2> /dev/null || { tail -n 5 usher.log; break; }
    sleep 1
  done
fi

created=$(usher client create --name "Documents" --notify-url "${NOTIFY_URL:-http://127.0.0.1:4000/notify}")
export CLIENT_ID="$(echo "$created" | text_field client_id)"
export CLIENT_SECRET="$(echo "$created" | text_field client_secret)"

if [ -z "$NOTIFY_URL" ]; then
  npm run -s usher -- listen --port 0 > usher-listen.log 2>&1 &
  until grep -q Listening usher-listen.log; do sleep 1; done
  export NOTIFY_URL="$(sed -n 's/^Listening at \([^;]*\);.*/\1/p' usher-listen.log)/notify"
  usher client set-notify-url "$CLIENT_ID" "$NOTIFY_URL" > /dev/null
fi

TOKEN=$(curl -s -u "$CLIENT_ID:$CLIENT_SECRET" -H 'Content-Type: application/json' \
  -d '{"grant_type":"client_credentials"}' "$AUTH_URL/auth/token" | json_field access_token)
echo "Client $CLIENT_ID at $AUTH_URL; its notifications arrive at $NOTIFY_URL."
