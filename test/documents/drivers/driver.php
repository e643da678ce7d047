<?php
require __DIR__ . '/receiver.php';

while (($line = fgets(STDIN)) !== false) {
    [$secret, $timestamp, $nonce, $signature, $body, $now] = explode("\t", rtrim($line, "\n"));
    $genuine = isGenuine($secret, $timestamp, $nonce, $signature, base64_decode($body), (int) $now);
    echo $genuine ? "genuine\n" : "refused\n";
}
