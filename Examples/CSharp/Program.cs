// Registers a device, sends to its tag, and waits for what became of it. .NET 8 or newer, nothing else.
//
//     BELFRY_CONNECTION_STRING='Endpoint=sb://…' BELFRY_HUB=shop dotnet run -- 'Hello'

using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;

var hub = new Hub(
    Environment.GetEnvironmentVariable("BELFRY_CONNECTION_STRING")!, Environment.GetEnvironmentVariable("BELFRY_HUB")!);
var token = Environment.GetEnvironmentVariable("DEVICE_TOKEN") ?? new string('0', 64);
await hub.Call(HttpMethod.Put, "installations/csharp-sample", Hub.Json(new
{
    platform = "apns", pushChannel = token, tags = new[] { "sample:csharp" },
    templates = new { main = new { body = """{"aps":{"alert":"$(message)"}}""" } },
}));
var notification = await hub.Send(new { message = args[0] }, "sample:csharp");
while (true)
{
    var (state, outcomes) = await hub.State(notification);
    if (state is not ("Enqueued" or "Processing"))
    {
        Console.WriteLine(JsonSerializer.Serialize(new { notification, state, outcomes }));
        return;
    }
    await Task.Delay(200);
}

sealed class Hub
{
    private readonly HttpClient client = new();
    private readonly string url, keyName, key;

    public Hub(string connectionString, string hub)
    {
        var fields = connectionString.Split(';', StringSplitOptions.RemoveEmptyEntries)
            .Select(part => part.Split('=', 2)).ToDictionary(part => part[0], part => part[1]);
        var endpoint = new Uri(fields["Endpoint"]);
        // `sb` is HTTPS; on this machine Belfry also speaks plain HTTP.
        var scheme = endpoint.IsLoopback ? "http" : "https";
        url = $"{scheme}://{endpoint.Authority}/{hub}";
        keyName = fields["SharedAccessKeyName"];
        key = fields["SharedAccessKey"];
    }

    /// <summary>A shared access signature for the whole hub, good for an hour.</summary>
    private string Token()
    {
        var resource = Uri.EscapeDataString(url);
        var expiry = DateTimeOffset.UtcNow.ToUnixTimeSeconds() + 3600;
        var digest = HMACSHA256.HashData(Encoding.UTF8.GetBytes(key), Encoding.UTF8.GetBytes($"{resource}\n{expiry}"));
        var signature = Uri.EscapeDataString(Convert.ToBase64String(digest));
        return $"SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={keyName}";
    }

    public async Task<HttpResponseMessage> Call(
        HttpMethod method, string path, HttpContent? body = null, params (string Name, string Value)[] headers)
    {
        var request = new HttpRequestMessage(method, $"{url}/{path}?api-version=2020-06") { Content = body };
        request.Headers.TryAddWithoutValidation("Authorization", Token());
        foreach (var (name, value) in headers) request.Headers.TryAddWithoutValidation(name, value);
        var reply = await client.SendAsync(request);
        if (!reply.IsSuccessStatusCode)
        {
            var text = await reply.Content.ReadAsStringAsync();
            throw new HttpRequestException($"{method} {path}: {(int)reply.StatusCode} {text}");
        }
        return reply;
    }

    /// <summary>With a length: JsonContent would be sent in chunks.</summary>
    public static StringContent Json(object value) =>
        new(JsonSerializer.Serialize(value), Encoding.UTF8, "application/json");

    /// <summary>Fills in everybody's template; the id of the notification.</summary>
    public async Task<string> Send(object properties, string tags)
    {
        var reply = await Call(HttpMethod.Post, "messages", Json(properties),
            ("ServiceBusNotification-Format", "template"), ("ServiceBusNotification-Tags", tags));
        return reply.Headers.Location!.Segments[^1];
    }

    public async Task<(string State, Dictionary<string, string> Outcomes)> State(string notification)
    {
        var reply = await Call(HttpMethod.Get, $"messages/{notification}");
        var document = await reply.Content.ReadAsStringAsync();
        var counts = Regex.Matches(document, "<Name>([^<]*)</Name><Count>([0-9]*)</Count>");
        return (Regex.Match(document, "<State>([^<]*)</State>").Groups[1].Value,
            counts.ToDictionary(match => match.Groups[1].Value, match => match.Groups[2].Value));
    }
}
