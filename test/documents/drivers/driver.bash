source ./receiver.bash
: >seen
while IFS=$'\t' read -r secret now headers body; do
  base64 -d <<<"$body" >body
  base64 -d <<<"$headers" >headers
  refusal "$secret" headers body "$now" seen
done
