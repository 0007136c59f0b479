import HTTP2
import Synchronization
import Testing

/// A server on a free port of this machine and what it takes to connect to it.
struct Harness {
  let server: HTTP2Server
  let handler: TestHandler
  let material: TestKeys.Material

  init(
    _ handler: TestHandler = TestHandler(),
    configure: (inout HTTP2ServerConfiguration, TestKeys.Material) -> Void = { _, _ in }
  ) throws {
    let material = try TestKeys.material.get()
    var configuration = HTTP2ServerConfiguration(
      host: "127.0.0.1", port: 0, certificatePEM: material.server.certificatePEM,
      keyPEM: material.server.keyPEM)
    configuration.handshakeTimeout = .seconds(60)  // a limit, for machines with much to do
    configure(&configuration, material)
    self.material = material
    self.handler = handler
    let server = try HTTP2Server(configuration, handler: handler)
    self.server = server
    Self.kept.withLock { $0.append(server) }
  }

  /// Servers live as long as the run: a test may look at its client only.
  private static let kept = Mutex<[HTTP2Server]>([])

  func connect(
    configure: (inout HTTP2ConnectionConfiguration) -> Void = { _ in }
  ) -> HTTP2Connection {
    var configuration = HTTP2ConnectionConfiguration(host: "127.0.0.1", port: server.port)
    configuration.extraAnchorsPEM = material.authorityPEM
    configuration.connectTimeout = .seconds(60)
    configure(&configuration)
    return HTTP2Connection(configuration)
  }
}

extension Harness {
  /// A connection whose clock stands still until the test moves it.
  func connectTimed(
    configure: (inout HTTP2ConnectionConfiguration) -> Void = { _ in }
  ) -> (HTTP2Connection, TestClock) {
    let clock = TestClock()
    let connection = connect {
      $0.monotonicClock = clock.now
      configure(&$0)
    }
    clock.drives(connection)
    return (connection, clock)
  }
}

/// `POST /0`, `/1` … with a short body each.
func makeBatch(
  _ count: Int, body: String = "{}", replyHeaders: [String] = [], keepsSuccessBodies: Bool = false
) -> HTTP2RequestBatch {
  var batch = HTTP2RequestBatch(
    authority: "localhost", replyHeaders: replyHeaders, keepsSuccessBodies: keepsSuccessBodies)
  let fields = batch.addFieldSet([
    HTTP2Field("authorization", "bearer secret", indexing: .never),
    HTTP2Field("apns-topic", "com.example.app"),
  ])
  let body = batch.write(body)
  for index in 0..<count {
    let path = batch.write("/\(index)")
    batch.addRequest(path: path, fields: fields, body: body)
  }
  return batch
}

/// Waits for something that no event announces, with a limit.
func eventually(
  _ what: Comment, within limit: Duration = .seconds(240),
  sourceLocation: SourceLocation = #_sourceLocation, _ condition: () async -> Bool
) async {
  let deadline = ContinuousClock.now + limit
  while ContinuousClock.now < deadline {
    if await condition() { return }
    try? await Task.sleep(for: .milliseconds(2))
  }
  Issue.record(what, sourceLocation: sourceLocation)
}

/// The error a connection ends with before it is ready; nil when it gets ready.
func failure(of connection: HTTP2Connection) async -> HTTP2ConnectionError? {
  do throws(HTTP2ConnectionError) {
    try await connection.ready()
    return nil
  } catch {
    return error
  }
}
