source ./receiver.bash
while IFS=$'\t' read -r secret timestamp nonce signature body now; do
  base64 -d <<<"$body" >body
  if is_genuine "$secret" "$timestamp" "$nonce" "$signature" body "$now"; then echo genuine; else echo refused; fi
done
