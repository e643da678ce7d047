# Functions and a token for the commands of the guides. It needs AUTH_URL, CLIENT_ID and CLIENT_SECRET.

# Prints JSON with line breaks, by the first of these programs that is installed.
json() {
  if command -v jq > /dev/null; then jq .
  elif command -v node > /dev/null; then node -e 'console.log(JSON.stringify(JSON.parse(fs.readFileSync(0)), null, 2))'
  else python3 -m json.tool
  fi
}
# The value of a text field of JSON.
json_field() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p"; }

TOKEN=$(curl -s -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials "$AUTH_URL/auth/token" | json_field access_token)
if [ -z "$TOKEN" ]; then
  echo "There is no token. Check AUTH_URL, CLIENT_ID and CLIENT_SECRET."
  false
fi
