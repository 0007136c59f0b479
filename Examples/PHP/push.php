#!/usr/bin/env php
<?php
// Registers a device, sends to its tag, and waits for what became of it. PHP 8 with nothing but what comes with it.
//
//     BELFRY_CONNECTION_STRING='Endpoint=sb://…' BELFRY_HUB=shop php push.php 'Hello'
declare(strict_types=1);

final class Hub
{
    private string $url;
    private string $keyName;
    private string $key;

    public function __construct(string $connectionString, string $hub)
    {
        $fields = [];
        foreach (array_filter(explode(';', $connectionString)) as $part) {
            [$name, $value] = explode('=', $part, 2);
            $fields[$name] = $value;
        }
        $host = rtrim(substr($fields['Endpoint'], strlen('sb://')), '/');
        // `sb` is HTTPS; on this machine Belfry also speaks plain HTTP.
        $scheme = preg_match('/^(127\.0\.0\.1|localhost)(:|$)/', $host) ? 'http' : 'https';
        $this->url = "$scheme://$host/$hub";
        $this->keyName = $fields['SharedAccessKeyName'];
        $this->key = $fields['SharedAccessKey'];
    }

    /** A shared access signature for the whole hub, good for an hour. */
    private function token(): string
    {
        $resource = rawurlencode($this->url);
        $expiry = time() + 3600;
        $signature = rawurlencode(base64_encode(hash_hmac('sha256', "$resource\n$expiry", $this->key, true)));
        return "SharedAccessSignature sr=$resource&sig=$signature&se=$expiry&skn=$this->keyName";
    }

    /** @return array{array<string, string>, string} the headers by their lower-case names, and the body */
    public function call(string $method, string $path, array $headers = [], ?string $body = null): array
    {
        $headers += ['Authorization' => $this->token(), 'Content-Type' => 'application/json'];
        $lines = array_map(fn($name, $value) => "$name: $value", array_keys($headers), $headers);
        $context = stream_context_create(['http' => [
            'method' => $method, 'header' => $lines, 'content' => $body ?? '', 'ignore_errors' => true, 'timeout' => 30,
        ]]);
        $text = file_get_contents("$this->url/$path?api-version=2020-06", false, $context);
        if ($text === false) {
            throw new RuntimeException("$method $path: no answer");
        }
        $found = [];
        foreach ($http_response_header as $line) {
            if (str_contains($line, ':')) {
                [$name, $value] = explode(':', $line, 2);
                $found[strtolower($name)] = trim($value);
            }
        }
        $status = (int) explode(' ', $http_response_header[0])[1];
        if ($status >= 300) {
            throw new RuntimeException("$method $path: $status $text");
        }
        return [$found, $text];
    }

    public function install(array $installation): void
    {
        $this->call('PUT', "installations/{$installation['installationId']}", [], json_encode($installation));
    }

    /** Fills in everybody's template; the id of the notification. */
    public function send(array $properties, string $tags): string
    {
        [$headers] = $this->call('POST', 'messages', [
            'ServiceBusNotification-Format' => 'template', 'ServiceBusNotification-Tags' => $tags,
        ], json_encode($properties));
        return basename(parse_url($headers['location'], PHP_URL_PATH));
    }

    /** @return array{string, array<string, string>} */
    public function state(string $notification): array
    {
        [, $document] = $this->call('GET', "messages/$notification");
        preg_match('~<State>([^<]*)</State>~', $document, $state);
        preg_match_all('~<Name>([^<]*)</Name><Count>([0-9]*)</Count>~', $document, $counts);
        return [$state[1], array_combine($counts[1], $counts[2])];
    }
}

$hub = new Hub(getenv('BELFRY_CONNECTION_STRING'), getenv('BELFRY_HUB'));
$hub->install([
    'installationId' => 'php-sample', 'platform' => 'apns',
    'pushChannel' => getenv('DEVICE_TOKEN') ?: str_repeat('00', 32), 'tags' => ['sample:php'],
    'templates' => ['main' => ['body' => '{"aps":{"alert":"$(message)"}}']],
]);
$notification = $hub->send(['message' => $argv[1]], 'sample:php');
do {
    usleep(200_000);
    [$state, $outcomes] = $hub->state($notification);
} while (in_array($state, ['Enqueued', 'Processing'], true));
echo json_encode(['notification' => $notification, 'state' => $state, 'outcomes' => (object) $outcomes]), "\n";
