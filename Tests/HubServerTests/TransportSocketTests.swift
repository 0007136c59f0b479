import Cryptography
import Foundation
import HTTPServer
import HubServer
import HubTesting
import NotificationHubs
import Testing

/// Every rule of docs/protocol/rest.md, section 1 that a client can see, over a real connection,
/// plain and encrypted.
@Suite("Transport rules over a socket", .timeLimit(.minutes(5)))
struct TransportSocketTests {
  enum Transport: CaseIterable {
    case http
    case https

    var scheme: String { self == .http ? "http" : "https" }
  }

  /// One request and what must come back.
  struct Row: Sendable, CustomTestStringConvertible {
    let rule: String
    let method: String
    let target: String
    var headers: [String] = []
    var body = ""
    let status: Int
    /// Signed with the key of the namespace.
    var asRoot = false

    var testDescription: String { rule }

    init(
      _ rule: String, _ method: String, _ target: String, _ status: Int, headers: [String] = [],
      body: String = "", asRoot: Bool = false
    ) {
      self.rule = rule
      self.method = method
      self.target = target
      self.headers = headers
      self.body = body
      self.status = status
      self.asRoot = asRoot
    }
  }

  private static let phone = #"{"installationId":"i1","platform":"apns","pushChannel":"0a1b"}"#
  private static let template = ["ServiceBusNotification-Format: template"]
  private static let apple = ["ServiceBusNotification-Format: apple"]
  private static let batch =
    "--b\r\nContent-Type: application/json\r\nContent-Disposition: inline; name=notification\r\n\r\n"
    + "{\"aps\":{}}\r\n--b\r\nContent-Type: application/json\r\n"
    + "Content-Disposition: inline; name=devices\r\n\r\n[\"0a1b\"]\r\n--b--\r\n"
  private static let multipart = apple + ["Content-Type: multipart/mixed; boundary=\"b\""]

  static let rows: [Row] = [
    // 1.1
    Row("fixed segments in any case", "PUT", "/HUB1/InStallations/i1", 200, body: phone),
    Row("registrationIDs in the docs' case", "POST", "/hub1/registrationIDs/", 201),
    Row("registrationids in lower case", "POST", "/hub1/registrationids", 201),
    Row("Registrations in capitals", "GET", "/hub1/REGISTRATIONS?api-version=2020-06", 200),
    Row(
      "one trailing slash", "POST", "/hub1/messages/?api-version=2015-01", 201, headers: template,
      body: "{}"),
    Row(
      "two trailing slashes are another path", "POST", "/hub1/messages//", 404, headers: template),
    Row(
      "a trailing slash before the query", "GET", "/hub1/registrations/?api-version=2015-01", 200),
    Row("an installation with a slash behind", "GET", "/hub1/installations/i1/", 200),
    Row(
      "parameter names in any case", "GET", "/hub1/registrations?API-VERSION=2015-01&$TOP=5", 200),
    Row("$ as %24 in a name", "GET", "/hub1/registrations?%24top=5&api-version=2015-01", 200),
    Row(
      "a flag before the version", "POST", "/hub1/messages?direct&api-version=2015-08", 201,
      headers: apple + ["ServiceBusNotification-DeviceHandle: 0a1b"], body: #"{"aps":{}}"#),
    Row(
      "a flag behind the version", "POST", "/hub1/messages?api-version=2015-08&direct=", 201,
      headers: apple + ["ServiceBusNotification-DeviceHandle: 0a1b"], body: #"{"aps":{}}"#),
    Row(
      "a flag that is true", "POST", "/hub1/messages?direct=true&api-version=2015-08", 201,
      headers: apple + ["ServiceBusNotification-DeviceHandle: 0a1b"], body: #"{"aps":{}}"#),
    Row(
      "unknown parameters, broken ones too", "GET", "/hub1/installations/i1?x=%zz&&y&=&test", 200),
    Row(
      "$batch as it is", "POST", "/hub1/messages/$batch?direct&api-version=2015-08", 201,
      headers: multipart, body: batch),
    Row(
      "$batch encoded", "POST", "/hub1/messages/%24batch?direct&api-version=2015-08", 201,
      headers: multipart, body: batch),
    Row(
      "$batch in capitals with a slash", "POST", "/hub1/messages/%24BATCH/?direct", 201,
      headers: multipart, body: batch),
    Row(
      "header names as the docs spell them", "POST", "/hub1/messages", 201,
      headers: ["SERVICEBUSNOTIFICATION-FORMAT: template", "Servicebusnotification-Tags: a"],
      body: "{}"),
    Row("an absolute target", "GET", "http://localhost/hub1/installations/i1", 200),
    Row("an encoded segment", "GET", "/hub1/%69nstallations/%691", 200),
    Row("an unknown hub", "GET", "/hub9/installations/i1", 404, asRoot: true),
    Row("an unknown hub, and a key of another", "GET", "/hub9/installations/i1", 401),
    // 1.2
    Row("no version means the newest", "GET", "/hub1/installations/i1", 200),
    Row("an unknown version", "GET", "/hub1/installations/i1?api-version=2031-01", 400),
    Row("an empty version", "GET", "/hub1/installations/i1?api-version=", 400),
    Row(
      "x-ms-version changes nothing", "GET", "/hub1/installations/i1", 200,
      headers: ["x-ms-version: 1999-01"]),
    Row(
      "x-ms-version does not override the query", "GET", "/hub1/installations/i1?api-version=1",
      400,
      headers: ["x-ms-version: 2020-06"]),
    // 1.3
    Row(
      "headers without effect", "GET", "/hub1/installations/i1", 200,
      headers: [
        "x-ms-client-request-id: 1", "traceparent: 00-x", "x-ms-azsdk-telemetry: a",
        "User-Agent: NHub/2020-06 (api-origin=DotNetSdk;os=x)",
      ]),
    Row(
      "a Content-Type with a dot behind", "PUT", "/hub1/installations/i1", 200,
      headers: ["Content-Type: application/json;charset=utf-8."], body: phone),
    Row(
      "a Content-Type that is none", "PUT", "/hub1/installations/i1", 200,
      headers: ["Content-Type: ?"], body: phone),
    // 1.6 and section 2
    Row("a resource that is none", "GET", "/hub1/nothing/x", 404),
    Row("HEAD", "HEAD", "/hub1/installations/i1", 405),
    Row("HEAD of a hub", "HEAD", "/hub1", 405),
    Row("OPTIONS", "OPTIONS", "/hub1/messages", 405),
    Row("a method of one's own", "BREW", "/hub1/registrations", 405),
    Row("DELETE of what is posted to", "DELETE", "/hub1/messages", 405),
    Row("non-ASCII bytes in a path", "GET", "/hub1/installations/caf\u{E9}\u{2603}", 404),
    Row("non-ASCII, encoded", "GET", "/hub1/installations/caf%C3%A9", 404),
    Row("bytes that are no text", "GET", "/hub1/installations/%ff", 400),
    Row("a hub that is no text", "GET", "/%ff/installations/i1", 404, asRoot: true),
    Row(
      "a body over the limit", "PUT", "/hub1/installations/i1", 413,
      body: String(repeating: " ", count: HubAPIConfiguration.defaultMaxBodyBytes + 1)),
  ]

  @Test("each is kept", arguments: rows, Transport.allCases)
  func rule(row: Row, transport: Transport) async throws {
    try await withHub(transport) { connect in
      _ = try await connect { client, head in
        try client.exchange(head("PUT", "/hub1/installations/i1", [], Self.phone))
      }
      let reply = try await connect { client, head in
        var request = head(row.method, row.target, row.headers, row.body)
        if row.asRoot {
          let token = TestHub.token(
            resource: "https://localhost/", name: "RootManageSharedAccessKey", key: TestHub.rootKey)
          request = request.replacing(#/Authorization: .*/#, with: "Authorization: \(token)")
        }
        try client.send(request)
        return try client.readReply(toHead: row.method == "HEAD")
      }
      #expect(reply.status == row.status, "\(reply)")
      #expect(reply.headers["date"] != nil)
      #expect(
        reply.headers["strict-transport-security"]
          == (transport == .https ? "max-age=2592000" : nil))
      #expect(UUID(uuidString: reply.headers["trackingid"] ?? "") != nil)
      #expect(UUID(uuidString: reply.headers["x-ms-correlation-request-id"] ?? "") != nil)
      if let location = reply.headers["location"] {
        #expect(location.hasPrefix("\(transport.scheme)://localhost:"))
        #expect(URL(string: location) != nil)
      }
      if row.status == 405 { #expect(reply.headers["allow"]?.isEmpty == false) }
      if row.status >= 400, row.method != "HEAD" {
        #expect(reply.headers["content-type"] == "application/xml; charset=utf-8")
        let form =
          #/<Error><Code>(\d+)</Code><Detail>[^<]*\.TrackingId:[0-9a-f-]{36}_G\d,TimeStamp:\d+/\d+/\d{4} \d+:\d\d:\d\d [AP]M</Detail></Error>/#
        let code = try form.wholeMatch(in: reply.body).map { String($0.1) }
        #expect(code == String(row.status), "\(reply.body)")
      }
    }
  }

  @Test("every api-version is served", arguments: APIVersionTable.all, Transport.allCases)
  func versions(version: String, transport: Transport) async throws {
    try await withHub(transport) { connect in
      let reply = try await connect { client, head in
        try client.exchange(head("GET", "/hub1/registrations?api-version=\(version)", [], ""))
      }
      #expect(reply.status == 200)
      // Addresses repeat the query.
      #expect(reply.body.contains("api-version=\(version)"))
    }
  }

  @Test("a chunked body, and one that waits for its 100", arguments: Transport.allCases)
  func bodies(transport: Transport) async throws {
    try await withHub(transport) { connect in
      let (chunked, interim, waited) = try await connect { client, head in
        let waiting = head("PUT", "/hub1/installations/i1", ["Expect: 100-continue"], Self.phone)
        try client.send(String(waiting.dropLast(Self.phone.count)))
        let interim = try client.readHead()
        let waited = try client.exchange(Self.phone)
        let request = head("PUT", "/hub1/installations/i1", [], "")
          .replacing("Content-Length: 0", with: "Transfer-Encoding: chunked")
        let half = Self.phone.count / 2
        try client.send(request)
        for part in [Self.phone.prefix(half), Self.phone.dropFirst(half)] {
          try client.send("\(String(part.utf8.count, radix: 16))\r\n\(part)\r\n")
        }
        // The connection ends behind it.
        return (try client.exchange("0\r\n\r\n"), interim, waited)
      }
      #expect(chunked.status == 200)
      #expect(interim.status == 100)
      #expect(waited.status == 200)
    }
  }

  @Test("a client's tracking id comes back in header and error", arguments: Transport.allCases)
  func trackingID(transport: Transport) async throws {
    let id = "5b9d2f3c-1111-2222-3333-444455556666"
    try await withHub(transport) { connect in
      let reply = try await connect { client, head in
        try client.exchange(head("GET", "/hub1/installations/none", ["trackingID: \(id)"], ""))
      }
      #expect(reply.headers["trackingid"] == id)
      #expect(reply.body.contains("Installation not found.TrackingId:\(id)_G"))
    }
  }

  // MARK: The stage

  private typealias Head = @Sendable (String, String, [String], String) -> String

  /// Lends a way to ask the hub: on a new connection, with a signed request.
  private func withHub(
    _ transport: Transport, _ body: (Connection) async throws -> Void
  ) async throws {
    let hub = try await TestHub()
    var configuration = HubAPIConfiguration.listener
    var authority: String?
    if transport == .https {
      let made = try Self.identity.get()
      configuration.tls = made.tls
      authority = made.authority
    }
    let listener = try HTTPListener(configuration, handler: hub.api)
    do {
      try await body(Connection(port: listener.port, authority: authority))
      await listener.stop()
    } catch {
      await listener.stop()
      throw error
    }
  }

  /// One for all tests: keys cost time.
  private static let identity = Result<(tls: TLSIdentity, authority: String), any Error> {
    let authority = try CertificateAuthority(commonName: "Test")
    let made = try authority.issueForLocalhost()
    return (
      TLSIdentity(
        certificatePEM: made.certificatePEM, privateKeyPEM: try made.privateKeyPEM()),
      authority.certificate.pem
    )
  }

  /// Where the hub is.
  private struct Connection: Sendable {
    let port: UInt16
    let authority: String?

    func callAsFunction<Value: Sendable>(
      _ body: @escaping @Sendable (RawClient, Head) throws -> Value
    ) async throws -> Value {
      let (port, authority) = (port, authority)
      let token = TestHub.token(resource: "https://localhost/")
      let head: Head = { method, target, headers, body in
        let lines =
          ["\(method) \(target) HTTP/1.1", "Host: localhost:\(port)", "Authorization: \(token)"]
          + headers + ["Content-Length: \(body.utf8.count)"]
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
      }
      return try await onThread { try body(RawClient(port: port, trusting: authority), head) }
    }
  }
}
