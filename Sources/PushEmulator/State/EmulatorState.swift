import Synchronization

/// The state that the services share, without I/O: input arrives as calls, and external effects are
/// their results. One lock guards it (`EmulatorCore`), together with each service's own state
/// (`StandIn`).
struct EmulatorState: Sendable {
  let options: EmulatorOptions
  let services: [any StandIn]
  var clock: EmulatorClock
  var generator: SeededGenerator
  /// The service of each app, by the app's number.
  var apps: [UInt32: PushService] = [:]
  var lastApp: UInt32 = 0
  var handles = HandleTable()
  /// The addresses of the services, once they listen.
  var addresses = EmulatorAddresses()
  var devices: DeviceTable
  var connections = ConnectionTable()
  var faults = FaultRules()
  var journal: Journal
  var statistics = Statistics()
  var lastRequest = 0
  /// Called for each request that is recorded, by number.
  var requestWatchers: [Int: @Sendable () -> Void] = [:]
  /// Streams are distinguished by number, also across a reset.
  private var lastReader = 0
  /// Increases with each change of apps and devices: the state file follows it.
  var revision = 0

  init(_ options: EmulatorOptions = EmulatorOptions()) {
    self.options = options
    services = PushService.allCases.map { $0.standIn.init(options) }
    clock = EmulatorClock(manual: options.manualClock)
    generator = SeededGenerator(seed: options.seed)
    devices = DeviceTable(limits: options.limits)
    journal = Journal(capacity: options.journal ? 100_000 : 0, bytes: options.journalBytes)
  }

  /// The service's stand-in.
  subscript(service: PushService) -> any StandIn {
    guard let found = services.first(where: { $0.service == service }) else {
      preconditionFailure("\(service) has no stand-in")  // The initializer made one of each.
    }
    return found
  }

  /// Removes apps, devices, channels, history, faults and journal, and restarts ids. Open
  /// connections and the clock are kept; streams end.
  ///
  /// - Parameter keepApps: Keeps apps and keys, and continues with the current ids.
  mutating func reset(keepApps: Bool) {
    for app in apps.keys { devices.removeFeed(of: app) }
    devices.endReaders()
    devices = DeviceTable(limits: options.limits)
    faults = FaultRules()
    journal.removeAll()
    statistics = Statistics()
    lastRequest = 0
    for wake in requestWatchers.values { wake() }
    handles = HandleTable()
    for service in services { service.reset(keepApps: keepApps, in: &self) }
    if !keepApps {
      apps = [:]
      lastApp = 0
      generator = SeededGenerator(seed: options.seed)
    }
    revision += 1
  }

  mutating func newReader(_ wake: @escaping @Sendable () -> Void) -> EventReader {
    lastReader += 1
    return EventReader(id: lastReader, wake: wake)
  }

  /// - Returns: The number by which the watcher is removed.
  mutating func watchRequests(_ wake: @escaping @Sendable () -> Void) -> Int {
    lastReader += 1
    requestWatchers[lastReader] = wake
    return lastReader
  }

  /// Does everything that is due: expirations, and pushes that were held long enough.
  mutating func settleDue() {
    let now = clock.now
    while let device = devices.takeDue(at: now) { settle(device, now: now) }
  }

  // MARK: Apps

  static func appID(_ number: UInt32) -> String { "app-\(number)" }

  /// The number of an app that exists.
  func appNumber(_ id: String) throws(ControlError) -> UInt32 {
    guard id.hasPrefix("app-"), let number = UInt32(id.dropFirst(4)), Self.appID(number) == id,
      apps[number] != nil
    else { throw .notFound("app '\(id)'") }
    return number
  }

  /// Allocates the next app number for an app of this service.
  mutating func newApp(_ service: PushService) -> UInt32 {
    lastApp += 1
    apps[lastApp] = service
    revision += 1
    return lastApp
  }

  /// Deletes an app with its credentials and devices; their handles become unknown.
  mutating func removeApp(_ number: UInt32) {
    for index in devices.indices(ofApp: number) {
      handles.set(devices[index].handle, device: nil)
      for former in devices.log(of: index)?.formerHandles ?? [] {
        handles.set(former.handle, device: nil)
      }
      devices[index].flags.insert(.deleted)
      devices.clearLog(of: index)
    }
    devices.removeFeed(of: number)
    if let service = apps.removeValue(forKey: number) {
      self[service].removeApp(number, in: &self)
    }
    revision += 1
  }
}

/// The state behind its one lock. Listener threads and the control API hold it for microseconds;
/// nothing is awaited or written to a socket under it.
final class EmulatorCore: Sendable {
  let services: [any StandIn]
  private let state: Mutex<EmulatorState>

  init(_ state: EmulatorState) {
    services = state.services
    self.state = Mutex(state)
  }

  func withState<Result: Sendable, Failure: Error>(
    _ body: (inout EmulatorState) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try state.withLock { (state: inout EmulatorState) throws(Failure) -> Result in
      try body(&state)
    }
  }
}
