<?php
require __DIR__ . '/receiver.php';

$seen = [];
while (($line = fgets(STDIN)) !== false) {
    [$secret, $now, $headers, $body] = explode("\t", rtrim($line, "\n"));
    $given = [];
    foreach (explode("\n", trim(base64_decode($headers))) as $one) {
        [$name, $value] = explode(': ', $one, 2);
        $given[$name] = $value;
    }
    echo (refusal($secret, $given, base64_decode($body), (int) $now, $seen) ?? 'genuine') . "\n";
}
