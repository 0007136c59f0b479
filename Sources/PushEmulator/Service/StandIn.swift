import Cryptography
import HTTP2
import Wire

/// A push service's stand-in: its rules for requests, its part of the control API, and its own
/// state of apps, credentials and channels. Devices and their waiting messages are in the
/// emulator's state (`EmulatorState`).
///
/// The same rules serve HTTP/2 and HTTP/1.1: requests over HTTP/1.1 are converted to the form of
/// HTTP/2, with lower-case names and `:method`, `:path` and `:authority`.
///
/// The emulator's lock guards a stand-in's state: every method that reads or changes it takes the
/// emulator's state as a parameter, which only the holder of the lock has.
protocol StandIn: AnyObject, Sendable {
  /// A parsed request, not checked yet.
  associatedtype Reading: Sendable

  static var service: PushService { get }
  static var listeners: [EmulatorListener] { get }
  /// Whether fault rules and journal distinguish the token endpoint.
  static var hasTokenName: Bool { get }
  /// Maximum size of a request's body in bytes.
  static var maxBody: Int { get }

  init(_ options: EmulatorOptions)

  // MARK: Requests

  /// The other service at the same address that a request is for; `nil` for this one.
  func guest(for request: HTTP2ServerRequest) -> PushService?

  /// Parses a request; no lock is held.
  func read(_ request: HTTP2ServerRequest) -> Reading

  /// The subject of a request.
  ///
  /// - Parameter forFaults: Whether there are fault rules to match; otherwise handle and app may be
  ///   omitted where the journal does not need them.
  func subject(
    _ reading: Reading, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject

  /// Checks the request and processes it.
  ///
  /// - Parameters:
  ///   - slot: The connection's slot.
  ///   - now: In ms since the Unix epoch.
  func answer(
    _ reading: Reading, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer

  /// The reply to a request whose head or body is over the listener's limit; nothing of it is read.
  func oversized(
    _ reading: Reading, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer

  /// The reply to a `reply` fault without a body; missing parts are filled in as the service would,
  /// with its own reason.
  func response(
    to fault: FaultAction.Reply, _ reading: Reading, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?)

  /// The header fields of a reply whose body the fault gives.
  func fields(
    ofGivenBody reading: Reading, in state: inout EmulatorState
  ) -> [(name: String, value: String)]

  // MARK: Connections

  /// Configures its HTTP/2 addresses where they differ from others.
  func configure(
    _ configuration: inout HTTP2ServerConfiguration, authority: Certificate,
    options: EmulatorOptions)

  /// Called for HTTP/2 connections only.
  /// - Returns: The new limit of concurrent streams; `nil` leaves it unchanged.
  func connectionOpened(
    _ slot: Int, at listener: EmulatorListener, certificate: HTTP2PeerCertificate?,
    in state: inout EmulatorState
  ) -> Int?

  func connectionClosed(_ slot: Int, in state: inout EmulatorState)

  /// The identity of a connection's client, and the environment, for the list of connections.
  func identity(ofConnection slot: Int, in state: EmulatorState) -> (
    JSONValue, environment: String?
  )?

  /// Seconds after which a connection without requests gets GOAWAY; `nil` for never.
  var idleTimeout: Int64? { get }

  // MARK: Apps

  /// Makes an app from the body of `POST /v1/apps`.
  ///
  /// - Returns: The app's number (see `EmulatorState.newApp`), and the members that only this reply
  ///   contains: private keys and files.
  func makeApp(
    _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSONValue)

  /// Changes an app by the body of `PATCH /v1/apps/{appId}`, completely or not at all.
  func changeApp(_ number: UInt32, _ json: JSONValue, in state: inout EmulatorState)
    throws(ControlError)

  /// The members of an app besides `appId`, `pns` and `devices`.
  ///
  /// - Parameter made: The result of `makeApp`, in the reply to it; its members come last.
  func appJSON(_ number: UInt32, made: JSONValue, in state: EmulatorState) -> JSONValue

  /// Forgets an app, whose devices have already been deleted.
  func removeApp(_ number: UInt32, in state: inout EmulatorState)

  // MARK: Devices

  /// Makes devices from the body of `POST /v1/devices`.
  ///
  /// - Parameter app: The app's number.
  func makeDevices(
    _ json: JSONValue, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int>

  /// A handle that no device of the service has or had.
  /// - Parameter old: The handle that it replaces, or resembles.
  func freshHandle(after old: DeviceHandle?, in state: inout EmulatorState) -> DeviceHandle

  /// Default lifetime of a handle in seconds; `nil` for no end.
  var handleLifetime: Int64? { get }

  /// Maximum time in seconds for which messages to a device in low-power mode are held; `nil` for
  /// no limit.
  var holdWindow: Int64? { get }

  /// `handle` of a device.
  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSONValue

  /// The members of a device that only this service has.
  func deviceJSON(_ index: Int, in state: EmulatorState) -> JSONValue

  /// Its own routes of the control API.
  func addRoutes(to api: ControlAPI, _ on: ControlAPI.Adder)

  // MARK: State

  /// - Parameter keepApps: Removes only the data about devices and messages.
  func reset(keepApps: Bool, in state: inout EmulatorState)

  /// The parts saved in the state file, by their keys.
  func saved(in state: EmulatorState) -> [(key: String, value: any Encodable & Sendable)]

  /// Reads the output of `saved`.
  ///
  /// - Returns: A closure that restores it, called when the devices exist.
  func restorer(
    _ saved: KeyedDecodingContainer<Snapshot.Key>
  ) throws -> @Sendable (inout EmulatorState) throws -> Void
}

extension StandIn {
  static var hasTokenName: Bool { false }
  static var maxBody: Int { 64 * 1024 }
  var service: PushService { Self.service }
  var idleTimeout: Int64? { nil }
  var handleLifetime: Int64? { nil }
  var holdWindow: Int64? { nil }

  func guest(for request: HTTP2ServerRequest) -> PushService? { nil }

  func fields(
    ofGivenBody reading: Reading, in state: inout EmulatorState
  ) -> [(name: String, value: String)] { [] }

  func configure(
    _ configuration: inout HTTP2ServerConfiguration, authority: Certificate,
    options: EmulatorOptions
  ) {}

  func connectionOpened(
    _ slot: Int, at listener: EmulatorListener, certificate: HTTP2PeerCertificate?,
    in state: inout EmulatorState
  ) -> Int? { nil }

  func connectionClosed(_ slot: Int, in state: inout EmulatorState) {}

  func identity(ofConnection slot: Int, in state: EmulatorState) -> (
    JSONValue, environment: String?
  )? {
    nil
  }

  func deviceJSON(_ index: Int, in state: EmulatorState) -> JSONValue { [:] }

  func addRoutes(to api: ControlAPI, _ on: ControlAPI.Adder) {}
}

/// The subject of a request, for fault rules and the journal.
struct ServiceSubject: Sendable {
  /// The service's name, or that of its token endpoint.
  var name: ServiceName
  var app: UInt32?
  var handle: String?
  /// The client's name or key, for throttling by credential.
  var credential: String?
  /// The path for the journal, if that of the request has an id of a credential.
  var path: String?
}

/// A service's reply, and the result of the request.
struct ServiceAnswer: Sendable {
  var response: HTTP2ServerResponse
  /// The service's word for a refusal, for journal and statistics; `nil` for a success.
  var reason: String?
  var credential = Journal.Credential.none
  /// The result for the message; for a broadcast, if it is the same for all.
  var storeAction: StoreAction?
  /// Number of devices that a broadcast was for.
  var recipients: Int?
  /// The device or channel, where only the reply identifies it.
  var handle: String?
  /// The new limit of concurrent streams on the connection.
  var streams: Int?
  /// The reason for which the connection must be closed.
  var dismissal: String?

  init(_ response: HTTP2ServerResponse, reason: String? = nil) {
    self.response = response
    self.reason = reason
  }

  /// The reply to an unsupported method.
  static let onlyPost = ServiceAnswer(
    .init(status: 405, fields: HTTP2FieldList([("allow", "POST")])), reason: "method")
}

extension HTTP2ServerResponse {
  /// An answer of JSON.
  static func json(
    _ status: Int, _ body: JSONValue, fields: [(name: String, value: String)] = [],
    contentType: String = "application/json; charset=UTF-8"
  ) -> HTTP2ServerResponse {
    .init(
      status: status, fields: HTTP2FieldList([("content-type", contentType)] + fields),
      body: body.jsonBytes)
  }

  /// The reply with the fields of a `reply` fault, which replace those of the same name.
  func with(_ headers: [(name: String, value: String)]) -> HTTP2ServerResponse {
    if headers.isEmpty { return self }
    var response = self
    let kept = fields.pairs.filter { field in !headers.contains { $0.name == field.name } }
    response.fields = HTTP2FieldList(kept + headers)
    return response
  }
}
