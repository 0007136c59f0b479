import Wire

/// A service other than APNs: its apps are one value each, its devices are called by a text.
protocol NamedStandIn: StandIn {
  associatedtype App: ServiceApp

  var apps: AppTable<App> { get set }

  /// The key of its apps in the state file.
  static var stateKey: String { get }

  /// The members that `change` reads.
  static var changeableMembers: [String] { get }

  /// Changes an app according to the body.
  func change(_ app: inout App, _ body: JSONReader) throws(ControlError)

  /// Revokes an app's tokens, so that its clients must authenticate again.
  func revokeTokens(of app: UInt32)

  /// Forgets counters of devices and messages.
  func forgetDevices()

  /// The text of a fresh handle.
  /// - Parameter old: The handle that it replaces.
  func freshText(after old: NamedHandle?, _ generator: inout SeededGenerator) -> String

  /// Completes a fresh handle with the values that belong to its text.
  func complete(
    _ handle: inout NamedHandle, after old: NamedHandle?, _ generator: inout SeededGenerator)

  /// The members of `handle`; the first of them contains the text.
  static var handleMembers: [String] { get }

  /// The required form of a fixed handle's text, for the error; `nil` if this one is valid.
  func fault(inHandle text: String) -> String?

  /// Reads a handle given by the request.
  func handle(
    _ reader: JSONReader, in state: inout EmulatorState
  ) throws(ControlError) -> NamedHandle?

  /// Adds an app from the state file.
  func restore(_ app: App)

  /// `handle` of a device.
  func handleJSON(_ handle: NamedHandle, in state: EmulatorState) -> JSONValue
}

extension NamedStandIn {
  static var stateKey: String { service.rawValue }

  func revokeTokens(of app: UInt32) {}

  func forgetDevices() {}

  func restore(_ app: App) { apps.add(app) }

  // MARK: Devices

  func complete(
    _ handle: inout NamedHandle, after old: NamedHandle?, _ generator: inout SeededGenerator
  ) {}

  func freshHandle(after old: DeviceHandle?, in state: inout EmulatorState) -> DeviceHandle {
    let old: NamedHandle? = if case .named(let old)? = old { old } else { nil }
    while true {
      let text = freshText(after: old, &state.generator)
      var handle = NamedHandle(service: service, text: text)
      complete(&handle, after: old, &state.generator)
      if state.handles.device(service, text) == nil { return .named(handle) }
    }
  }

  func handle(
    _ reader: JSONReader, in state: inout EmulatorState
  ) throws(ControlError) -> NamedHandle? {
    guard let text = try reader.string(Self.handleMembers[0]) else { return nil }
    if let fault = fault(inHandle: text) { throw reader.invalid(Self.handleMembers[0], fault) }
    return NamedHandle(service: service, text: text)
  }

  func makeDevices(
    _ json: JSONValue, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int> {
    let body = try JSONReader(json, known: DeviceRequest.members + ["handle"])
    let request = try DeviceRequest(body, app: app)
    let reader = try body.object("handle", known: Self.handleMembers)
    let fixed = try reader.flatMap { reader throws(ControlError) in
      try handle(reader, in: &state)
    }
    return try state.addDevices(request, fixed: fixed.map(DeviceHandle.named))
  }

  func handleJSON(_ handle: NamedHandle, in state: EmulatorState) -> JSONValue {
    .object([.init(Self.handleMembers[0], .string(handle.text))])
  }

  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSONValue {
    if case .named(let handle) = handle { handleJSON(handle, in: state) } else { .null }
  }

  /// The app of the device that a text names.
  func app(ofHandle text: String, in state: EmulatorState) -> UInt32? {
    state.handles.device(service, text).map { state.devices[$0].app }
  }

  // MARK: Apps

  func changeApp(
    _ number: UInt32, _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) {
    let body = try JSONReader(json, known: Self.changeableMembers)
    guard var app = apps[number] else { return }
    try change(&app, body)
    apps.add(app)
    state.revision += 1
  }

  func removeApp(_ number: UInt32, in state: inout EmulatorState) {
    apps.remove(number)
    revokeTokens(of: number)
  }

  /// The first app; one is made if there is none.
  func firstApp(in state: inout EmulatorState) throws(ControlError) -> App {
    if let first = apps.first { return first }
    _ = try makeApp(["pns": .string(service.rawValue)], in: &state)
    guard let made = apps.first else { throw .notFound("app of \(service.rawValue)") }
    return made
  }

  func reset(keepApps: Bool, in state: inout EmulatorState) {
    forgetDevices()
    guard !keepApps else { return }
    for number in apps.all.keys { revokeTokens(of: number) }
    apps = AppTable()
  }

  func saved(in state: EmulatorState) -> [(key: String, value: any Encodable & Sendable)] {
    [(Self.stateKey, apps.all.values.sorted { $0.number < $1.number })]
  }

  func restorer(
    _ saved: KeyedDecodingContainer<Snapshot.Key>
  ) throws -> @Sendable (inout EmulatorState) throws -> Void {
    let apps = try saved.decodeIfPresent([App].self, forKey: Snapshot.Key(Self.stateKey)) ?? []
    return { state in
      for app in apps {
        self.restore(app)
        state.apps[app.number] = Self.service
      }
    }
  }
}

/// An app as its service knows it; kept in the state file.
protocol ServiceApp: Codable, Sendable {
  /// Unique in the emulator.
  var number: UInt32 { get }
  /// The names by which requests refer to it, each unique in the service.
  var names: [String] { get }
}

/// The apps of a service.
struct AppTable<App: ServiceApp>: Sendable {
  private(set) var all: [UInt32: App] = [:]
  private var numbers: [String: UInt32] = [:]

  subscript(number: UInt32) -> App? { all[number] }

  func named(_ name: String) -> App? { numbers[name].flatMap { all[$0] } }

  var first: App? { all.values.min { $0.number < $1.number } }

  /// Adds an app, or replaces its earlier version.
  mutating func add(_ app: App) {
    remove(app.number)
    all[app.number] = app
    for name in app.names { numbers[name] = app.number }
  }

  mutating func remove(_ number: UInt32) {
    for name in all.removeValue(forKey: number)?.names ?? [] { numbers[name] = nil }
  }
}
