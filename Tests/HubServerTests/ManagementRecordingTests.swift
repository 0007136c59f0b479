import HTTPServer
import HubServer
import HubTesting
import NotificationHubs
import Testing

/// Replays the service's recordings of hub management over a socket.
///
/// Allowed to differ, because they must: host, dates, keys, ids of jobs and list entries, tracking
/// ids; and the `Daily…` counters, which Belfry does not keep (absent means 0).
@Suite("Recordings of hub management", .timeLimit(.minutes(5)))
struct ManagementRecordingTests {
  static let namespace = "am3verify20200623"

  private static let description = """
    <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">\
    <NotificationHubDescription xmlns:i="http://www.w3.org/2001/XMLSchema-instance" \
    xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">STATUS\
    </NotificationHubDescription></content></entry>
    """

  private static func normalized(_ text: String) -> String {
    Recording.normalized(text)
      .replacing(/uuid:[0-9a-f-]{36};id=\d+/, with: "SERVICE")
      .replacing(/\d{19}[0-9a-f]{8}-[0-9a-f-]{27}/, with: "JOB")
      .replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/, with: "DATE")
      .replacing(/<(Primary|Secondary)Key>[A-Za-z0-9+\/]{43}=</, with: "<KEY>KEY<")
      .replacing(/<Daily\w+>\d+<\/Daily\w+>/, with: "")
  }

  private func replay(
    _ name: String, on engine: TestedEngine, _ requests: [(String, [String: String], String)]
  ) async throws {
    var configuration = HubAPIConfiguration()
    configuration.namespace = Self.namespace
    let api = configuration
    try await withHub(hubs: [], configuration: api, on: engine) { hub in
      let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
      let client = SocketClient(port: listener.port)
      let calls = try Recording(named: name).calls
      try #require(calls.count == requests.count)
      var job = ""
      for (call, (method, headers, body)) in zip(calls, requests) {
        var headers = headers
        headers[WireName.authorization] = TestHub.token(
          resource: "http://127.0.0.1:\(listener.port)/", name: "RootManageSharedAccessKey",
          key: TestHub.rootKey)
        let path = call.path.replacing(/\/jobs\/[^?]+/, with: "/jobs/\(job)")
        let reply = try await client.send(method, path, headers: headers, body: body)
        #expect(reply.status == call.status)
        #expect(reply.headers["content-type"] == call.contentHeaders["Content-Type"])
        if let length = call.contentHeaders["Content-Length"] {
          #expect(reply.headers["content-length"] == length)
        }
        for (header, wanted) in [
          ("location", call.headers["Location"]),
          ("content-location", call.contentHeaders["Content-Location"]),
        ] {
          #expect(reply.headers[header].map(Self.normalized) == wanted.map(Self.normalized))
        }
        #expect(Self.normalized(reply.body) == Self.normalized(call.content ?? ""))
        if let location = reply.headers["location"] {
          job = String(location.prefix { $0 != "?" }.split(separator: "/").last ?? "")
        }
      }
      await listener.stop()
    }
  }

  @Test(
    "a hub is made, read, listed, refused twice, disabled and deleted",
    arguments: TestedEngine.installed)
  func hubs(engine: TestedEngine) async throws {
    let entry = Self.description.replacing("STATUS", with: "")
    let disabled = Self.description.replacing("STATUS", with: "<Status>true</Status>")
    let get = ("GET", [String: String](), "")
    let put = ("PUT", [String: String](), entry)
    let delete = ("DELETE", [String: String](), "")
    try await replay(
      "ManagementApi_ShouldCreateGetOrDeleteHubOrRecieveConflictException", on: engine,
      [
        get, get, get, put, get, get, get, put, get,
        ("PUT", ["If-Match": "*"], disabled), delete, get, get, delete,
      ])
  }

  @Test("a job is accepted and read", arguments: TestedEngine.installed)
  func jobs(engine: TestedEngine) async throws {
    let job = """
      <entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">\
      <NotificationHubJob xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">\
      <Type>ImportCreateRegistrations</Type><OutputContainerUri><![CDATA[\
      https://nhsdke2etest.blob.core.windows.net/testimportbulk?sv=2019-02-02&sr=c&sig=SCRUBBED&\
      se=2020-07-02T22%3A03%3A24Z&sp=rwl]]></OutputContainerUri><ImportFileUri>\
      https://nhsdke2etest.blob.core.windows.net/testimportbulk/ImportRegistrations.txt?\
      sv=2019-02-02&amp;sr=b&amp;sig=SCRUBBED&amp;se=2020-07-02T22%3A03%3A24Z&amp;sp=rcw\
      </ImportFileUri></NotificationHubJob></content></entry>
      """
    try await replay(
      "ManagementApi_ShouldReceiveCorrectJobs", on: engine,
      [
        ("PUT", [:], Self.description.replacing("STATUS", with: "")), ("POST", [:], job),
        ("GET", [:], ""),
      ])
  }
}
