import Cryptography
import HTTP2

/// A push service's stand-in: its rules for requests, its part of the control API, and what it
/// knows of apps, credentials and channels. Devices and what waits for them are the emulator's
/// (`EmulatorState`).
///
/// The same rules serve HTTP/2 and HTTP/1.1: requests over HTTP/1.1 come in the form of HTTP/2,
/// with lower-case names and `:method`, `:path` and `:authority`.
///
/// The emulator's lock guards what a stand-in knows: only who holds it has the state that every
/// method takes which reads or changes that.
protocol StandIn: AnyObject, Sendable {
  /// A request as the service reads it, nothing judged yet.
  associatedtype Reading: Sendable

  static var service: PushService { get }
  static var listeners: [EmulatorListener] { get }
  /// Whether fault rules and journal tell the token endpoint apart.
  static var hasTokenWord: Bool { get }

  init(_ options: EmulatorOptions)

  // MARK: Requests

  /// Looks at a request; no lock is held.
  func read(_ request: HTTP2ServerRequest) -> Reading

  /// What a request is about.
  ///
  /// - Parameter forFaults: Whether there are fault rules to be matched against; otherwise handle
  ///   and app may be left out where the journal has no need of them.
  func subject(
    _ reading: Reading, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject

  /// Judges the request and does what it asks.
  ///
  /// - Parameters:
  ///   - slot: The connection's.
  ///   - now: In ms since the Unix epoch.
  func answer(
    _ reading: Reading, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer

  /// The answer to a request whose head or body is over the listener's limit; nothing of it is
  /// read.
  func oversized(
    _ reading: Reading, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer

  /// The answer that a `reply` fault without a body asks for; what it leaves open is filled in as
  /// the service would, with the service's own word for it.
  func response(
    to fault: FaultAction.Reply, _ reading: Reading, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?)

  /// The header fields of a reply whose body the fault gives.
  func fields(
    ofGivenBody reading: Reading, in state: inout EmulatorState
  ) -> [(name: String, value: String)]

  // MARK: Connections

  /// What its HTTP/2 addresses do otherwise than others.
  func configure(
    _ configuration: inout HTTP2ServerConfiguration, authority: Certificate,
    options: EmulatorOptions)

  /// Of HTTP/2 connections only.
  /// - Returns: How many streams the connection may have from now on; `nil` leaves that.
  func connectionOpened(
    _ slot: Int, at listener: EmulatorListener, certificate: HTTP2PeerCertificate?,
    in state: inout EmulatorState
  ) -> Int?

  func connectionClosed(_ slot: Int, in state: inout EmulatorState)

  /// Who speaks on a connection, and the environment, for the list of connections.
  func identity(ofConnection slot: Int, in state: EmulatorState) -> (JSON, environment: String?)?

  /// Seconds after which a connection without requests gets GOAWAY; `nil` for never.
  var idleTimeout: Int64? { get }

  // MARK: Apps

  /// Makes an app from the body of `POST /v1/apps`.
  ///
  /// - Returns: The app's number (see `EmulatorState.newApp`), and what only this answer tells:
  ///   private keys and files.
  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSON)

  /// Changes an app by the body of `PATCH /v1/apps/{appId}`: all of it happens, or nothing.
  func changeApp(_ number: UInt32, _ json: JSON, in state: inout EmulatorState) throws(ControlError)

  /// What an app shows beside `appId`, `pns` and `devices`.
  ///
  /// - Parameter made: What `makeApp` returned, in the answer to it; it is shown behind these.
  func appJSON(_ number: UInt32, made: JSON, in state: EmulatorState) -> JSON

  /// Forgets an app; its devices are gone already.
  func removeApp(_ number: UInt32, in state: inout EmulatorState)

  // MARK: Devices

  /// Makes devices from the body of `POST /v1/devices`.
  ///
  /// - Parameter app: The app's number.
  func makeDevices(
    _ json: JSON, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int>

  /// A handle that no device of the service has or had.
  /// - Parameter old: The one that it takes the place of, or is to be like.
  func freshHandle(after old: DeviceHandle?, in state: inout EmulatorState) -> DeviceHandle

  /// Seconds that a handle is good for when nobody says; `nil` for no end.
  var handleLifetime: Int64? { get }

  /// Seconds that a device which saves power may be kept waiting; `nil` for as long as it does.
  var holdWindow: Int64? { get }

  /// `handle` of a device.
  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSON

  /// What a device of this service shows and others do not.
  func deviceJSON(_ index: Int, in state: EmulatorState) -> JSON

  /// Its own routes of the control API.
  func addRoutes(to api: ControlAPI, _ on: ControlAPI.Adder)

  // MARK: State

  /// - Parameter keepApps: Only what is known of devices and messages goes.
  func reset(keepApps: Bool, in state: inout EmulatorState)

  /// What is kept in the state file, by its name there.
  func saved(in state: EmulatorState) -> [(key: String, value: any Encodable & Sendable)]

  /// Reads what `saved` wrote.
  ///
  /// - Returns: Takes it up; the devices are there already.
  func restorer(
    _ saved: KeyedDecodingContainer<Snapshot.Key>
  ) throws -> @Sendable (inout EmulatorState) throws -> Void
}

extension StandIn {
  static var hasTokenWord: Bool { false }
  var service: PushService { Self.service }
  var idleTimeout: Int64? { nil }
  var handleLifetime: Int64? { nil }
  var holdWindow: Int64? { nil }

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

  func identity(ofConnection slot: Int, in state: EmulatorState) -> (JSON, environment: String?)? {
    nil
  }

  func deviceJSON(_ index: Int, in state: EmulatorState) -> JSON { [:] }

  func addRoutes(to api: ControlAPI, _ on: ControlAPI.Adder) {}
}

/// What a request is about, for fault rules and the journal.
struct ServiceSubject: Sendable {
  /// The service's word, or that of its token endpoint.
  var word: ServiceWord
  var app: UInt32?
  var handle: String?
  /// The client's name or key, for throttling by credential.
  var credential: String?
}

/// A service's answer, and what it made of the request.
struct ServiceAnswer: Sendable {
  var response: HTTP2ServerResponse
  /// The service's word for a refusal, for journal and statistics; `nil` for a success.
  var reason: String?
  var credential = Journal.Credential.none
  /// What became of the message; of a broadcast, where it is the same for all.
  var storeAction: StoreAction?
  /// How many devices a broadcast was for.
  var recipients: Int?
  /// The device or channel, where only the answer tells.
  var handle: String?
  /// The connection may have so many streams from now on.
  var streams: Int?
  /// The connection has to go, for this reason.
  var dismissal: String?

  init(_ response: HTTP2ServerResponse, reason: String? = nil) {
    self.response = response
    self.reason = reason
  }

  /// For a method that does not work.
  static let onlyPost = ServiceAnswer(
    .init(status: 405, fields: HTTP2FieldList([("allow", "POST")])), reason: "method")
}

extension HTTP2ServerResponse {
  /// An answer of JSON.
  static func json(
    _ status: Int, _ body: JSON, fields: [(name: String, value: String)] = [],
    contentType: String = "application/json; charset=UTF-8"
  ) -> HTTP2ServerResponse {
    .init(
      status: status, fields: HTTP2FieldList([("content-type", contentType)] + fields),
      body: body.bytes)
  }

  /// The answer with the fields of a `reply` fault; one of the same name takes the other's place.
  func with(_ headers: [(name: String, value: String)]) -> HTTP2ServerResponse {
    if headers.isEmpty { return self }
    var response = self
    let kept = fields.pairs.filter { field in !headers.contains { $0.name == field.name } }
    response.fields = HTTP2FieldList(kept + headers)
    return response
  }
}
