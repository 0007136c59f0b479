/// What new devices are made from, as far as all services have it (emulator.md, section 2.2).
struct DeviceRequest: Sendable {
  var app: UInt32
  var count = 1
  var online = true
  var presence = Presence.flag
  /// Seconds until the handle expires.
  var ttl: Int64?
  var end: EmulatorState.RegistrationEnd?
  /// With `end`: since when, in ms.
  var at: Int64?
  var minUrgency = Urgency.veryLow

  init(app: UInt32) { self.app = app }

  /// Members of `POST /v1/devices` that are read here.
  static let members = [
    "appId", "count", "online", "presence", "ttl", "state", "at", "minUrgency",
  ]

  /// Most devices of one request.
  private static let limit: Int64 = 1_000_000

  init(_ body: JSONReader, app: UInt32) throws(ControlError) {
    self.app = app
    count = Int(try body.int("count", in: 1...Self.limit) ?? 1)
    online = try body.bool("online") ?? true
    presence = try body.word("presence", Presence.self) ?? .flag
    ttl = try body.int("ttl", in: 0...10_000_000_000)
    end = try body.word("state", EmulatorState.RegistrationEnd.self)
    at = try body.int("at", in: 0...EmulatorClock.latest)
    if at != nil, end == nil { throw body.invalid("at", "goes with 'state' only") }
    minUrgency = try body.urgency("minUrgency") ?? .veryLow
  }
}

extension JSONReader {
  /// One of Web Push's four words.
  func urgency(_ member: String) throws(ControlError) -> Urgency? {
    guard let word = try string(member) else { return nil }
    guard let urgency = Urgency(word: word) else {
      throw invalid(member, "must be one of: \(Urgency.words.joined(separator: ", "))")
    }
    return urgency
  }
}

extension EmulatorState {
  /// Makes devices, each with the handle that `handle` gives it.
  mutating func addDevices(
    _ request: DeviceRequest, handle: (inout EmulatorState) -> DeviceHandle
  ) -> Range<Int> {
    let now = clock.now
    devices.reserve(request.count)
    let first = devices.count
    var flags: Device.Flags = request.online ? .online : []
    if request.presence == .stream { flags.insert(.followsStream) }
    let lifetime = request.ttl ?? apps[request.app]?.desk.handleLifetime
    for _ in 0..<request.count {
      let handle = handle(&self)
      var device = Device(app: request.app, handle: handle, flags: flags)
      device.minUrgency = request.minUrgency
      if let lifetime { device.expiresAt = now + lifetime * 1000 }
      switch request.end {
      case .unregistered: device.registration = .unregistered(at: request.at ?? now)
      case .expired: device.registration = .expired(at: request.at ?? now)
      case .unknown: device.registration = .unknown
      case nil: break
      }
      set(handle, device: devices.add(device))
    }
    revision += 1
    return first..<devices.count
  }

  /// Makes devices of a service other than APNs.
  ///
  /// - Parameter fixed: The handle that the one new device gets.
  mutating func addDevices(
    _ request: DeviceRequest, fixed: NamedHandle?
  ) throws(ControlError) -> Range<Int> {
    guard let service = apps[request.app] else { throw .notFound("app \(request.app)") }
    if let fixed {
      guard request.count == 1 else {
        throw .invalidValue("count", "must be 1 with a fixed handle")
      }
      guard handles.device(service, fixed.text) == nil else {
        throw .conflict("a device of \(service.rawValue) has that handle already")
      }
    }
    if request.count > 1 { handles.reserve(request.count, for: service) }
    return addDevices(request) { state in
      .named(fixed ?? service.desk.freshHandle(after: nil, in: &state))
    }
  }
}
