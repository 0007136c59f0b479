import Foundation
import HubTesting
import NotificationHubs
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension CommandLineSuite {
  @Suite("Bad input over HTTP", .timeLimit(.minutes(5))) struct BadInputOverHTTPTests {
    /// A running hub, asked with the namespace's key.
    private struct Hub {
      let line: UpLine

      func ask(
        _ method: String, _ path: String, headers: [String: String] = [:], _ body: String = ""
      ) async throws -> (status: Int, text: String) {
        let access = try ConnectionString(line.hub.namespaceConnectionString)
        let url = try #require(URL(string: line.hub.url + path))
        var request = URLRequest(url: url)
        request.httpMethod = method
        request.httpBody = Data(body.utf8)
        request.setValue(
          SharedAccessSignature(
            resource: line.hub.url, keyName: access.keyName, key: access.key,
            expiresAt: Date() + 600
          ).text, forHTTPHeaderField: "Authorization")
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        let (data, response) = try await URLSession.shared.data(for: request)
        return (
          (response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self)
        )
      }
    }

    /// As the original words the outcome BadChannel.
    private static let badChannel =
      "The Push Notification System handle for the registration is invalid"

    private func withHub(_ body: (Hub) async throws -> Void) async throws {
      let (process, line) = try await BelfryProcess.up()
      try await body(Hub(line: line))
      #expect(try await process.end() == 0)
    }

    private static func entry(_ credential: String, _ properties: [(String, String)]) -> String {
      let list = properties.map {
        "<Property><Name>\($0.0)</Name><Value>\($0.1)</Value></Property>"
      }
      return """
        <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">\
        <NotificationHubDescription \
        xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">\
        <\(credential)><Properties>\(list.joined())</Properties></\(credential)>\
        </NotificationHubDescription></content></entry>
        """
    }

    @Test("hub management refuses a credential that cannot work, and says why")
    func credentials() async throws {
      let archive = try CertificateArchive.make(
        lifetime: -86_400, now: Date(), password: "pw")
      let apple = [("Endpoint", "https://api.push.apple.com")]
      let ids = [("KeyId", "ABC123DEFG"), ("AppId", "DEF123GHIJ"), ("AppName", "com.example")]
      try await withHub { hub in
        for (credential, properties, reason) in [
          ("ApnsCredential", apple + ids + [("Token", archive)], "Token is not a signing key"),
          (
            "ApnsCredential",
            apple + [("ApnsCertificate", archive), ("CertificateKey", "hidden")],
            "CertificateKey is wrong"
          ),
          (
            "ApnsCredential", apple + [("ApnsCertificate", archive), ("CertificateKey", "pw")],
            "has expired"
          ),
          ("ApnsCredential", apple, "Neither Token nor ApnsCertificate"),
          (
            "FcmV1Credential",
            [("ProjectId", "p"), ("ClientEmail", "a@b"), ("PrivateKey", "hidden")], "PrivateKey"
          ),
          (
            "BrowserCredential",
            [
              ("Subject", "mailto:a@example.com"), ("VapidPublicKey", "BA"),
              ("VapidPrivateKey", "hidden"),
            ], "VapidPrivateKey"
          ),
          ("WnsCredential", [("PackageSid", "x"), ("SecretKey", "hidden")], "Package SID"),
          ("AdmCredential", [("ClientId", "c")], "ClientSecret"),
          (
            "BaiduCredential",
            [("BaiduApiKey", "k"), ("BaiduSecretKey", "hidden"), ("BaiduEndPoint", "http://x")],
            "https"
          ),
          ("XiaomiCredential", [("AppSecret", "hid den")], "AppSecret"),
        ] {
          let reply = try await hub.ask(
            "PUT", "/news?api-version=2017-04", Self.entry(credential, properties))
          #expect(reply.status == 400 && reply.text.contains(reason), "\(credential): \(reply)")
          #expect(!reply.text.contains("hidden") && !reply.text.contains("hid den"))
        }
      }
    }

    @Test("a payload over its service's size is 413 when it is sent, with size and limit")
    func sizes() async throws {
      try await withHub { hub in
        for (format, start, end, limit, headers) in [
          ("apple", #"{"aps":{"alert":""#, #""}}"#, 4096, [:]),
          ("fcmv1", #"{"message":{"data":{"a":""#, #""}}}"#, 4096, [:]),
          ("browser", #"{"a":""#, #""}"#, 3993, [:]),
          ("windows", "", "", 5000, ["X-WNS-Type": "wns/raw"]),
          ("adm", #"{"data":{"a":""#, #""}}"#, 6144, [:]),
          ("baidu", #"{"description":""#, #""}"#, 4096, [:]),
          ("windowsphone", "<a>", "</a>", 3072, ["X-WindowsPhone-Target": "raw"]),
        ] as [(String, String, String, Int, [String: String])] {
          let frame = format == "fcmv1" ? 1 : (start + end).utf8.count
          for (size, status) in [(limit, 201), (limit + 1, 413)] {
            let body = start + String(repeating: "x", count: size - frame) + end
            let reply = try await hub.ask(
              "POST", "/demo/messages/?api-version=2015-01",
              headers: headers.merging(["ServiceBusNotification-Format": format]) { $1 }, body)
            #expect(reply.status == status, "\(format) \(size): \(reply)")
            if status == 413 {
              #expect(reply.text.contains("\(limit)") && reply.text.contains("\(size) bytes"))
            }
          }
        }
      }
    }

    @Test(
      "a handle that cannot be one is told at once where the form is known, or with its outcome")
    func handles() async throws {
      try await withHub { hub in
        for (platform, channel, reason) in [
          ("apns", #""not hex""#, "hexadecimal"), ("wns", #""channel""#, "absolute URI"),
          ("browser", #""text""#, "subscription"),
          ("browser", #"{"endpoint":"x","p256dh":"y","auth":"z"}"#, "absolute URI"),
          ("fcmv1", #"{"endpoint":"x","p256dh":"y","auth":"z"}"#, "must be a text"),
          ("palm", #""x""#, "platform"),
        ] {
          let reply = try await hub.ask(
            "PUT", "/demo/installations/bad?api-version=2020-06",
            headers: ["Content-Type": "application/json"],
            #"{"installationId":"bad","platform":"\#(platform)","pushChannel":\#(channel)}"#)
          #expect(reply.status == 400, "\(platform): \(reply)")
          #expect(reply.text.lowercased().contains(reason.lowercased()), "\(platform): \(reply)")
        }
        let client = try hub.line.client()
        let key =
          "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
        for (id, platform, channel, payload) in [
          ("fcm", PushPlatform.fcmv1, PushChannel.handle("a b"), #"{"message":{"data":{}}}"#),
          ("http", .wns, .wns(channelURI: "http://db5.notify.windows.com/x"), "<toast/>"),
          (
            "private", .browser,
            .subscription(
              endpoint: "https://192.168.1.1/wp", p256dh: key, auth: "BTBZMqHH6r4Tts7J_aSIgg"), "{}"
          ),
          (
            "metadata", .browser,
            .subscription(
              endpoint: "https://169.254.169.254/", p256dh: key, auth: "BTBZMqHH6r4Tts7J_aSIgg"),
            "{}"
          ),
          (
            "curve", .browser,
            .subscription(
              endpoint: "https://fcm.googleapis.com/fcm/send/1",
              p256dh: String(key.dropLast(2)) + "AA", auth: "BTBZMqHH6r4Tts7J_aSIgg"), "{}"
          ),
        ] {
          try await client.createOrReplace(
            Installation(
              installationID: id, platform: platform, pushChannel: channel,
              tags: [Tag(rawValue: "\(id)-tag")]))
          let report = try await client.testSend(
            .native(platform, payload), to: .tag(Tag(rawValue: "\(id)-tag")))
          #expect(report.results.map(\.outcome) == [Self.badChannel], "\(id): \(report)")
        }
      }
    }
  }
}
