import Cryptography

/// APNs apps and devices as the control API makes them.
extension EmulatorState {
  static func appID(_ number: UInt32) -> String { "app-\(number)" }

  /// The number of an app that exists.
  func appNumber(_ id: String) throws(ControlError) -> UInt32 {
    guard id.hasPrefix("app-"), let number = UInt32(id.dropFirst(4)), Self.appID(number) == id,
      apns.apps[number] != nil
    else { throw .notFound("app '\(id)'") }
    return number
  }

  /// What a new app shall be; `nil` members are made.
  struct APNsAppRequest: Sendable {
    var bundleID: String
    var teamID: String?
    var environment = APNsEnvironmentScope.both
    var keys: [Key]?
    var certificates: [String] = []

    struct Key: Sendable {
      var kid: String
      var publicKey: P256PublicKey
      var scope = APNsKeyScope.team
      var topics: [String] = []
      var environment = APNsEnvironmentScope.both
    }
  }

  /// - Returns: The app's number, and the private key's PEM by key id when one was made.
  mutating func addApp(
    _ request: APNsAppRequest
  ) throws(ControlError) -> (number: UInt32, made: (kid: String, privateKeyPEM: String)?) {
    if let team = request.teamID, apns.app(team: team, bundleID: request.bundleID) != nil {
      throw .conflict("team '\(team)' has an app '\(request.bundleID)' already")
    }
    for key in request.keys ?? [] where apns.keys[key.kid] != nil {
      throw .conflict("there is a key '\(key.kid)' already")
    }
    let team = request.teamID ?? generator.appleID()
    var keys = request.keys ?? []
    var made: (kid: String, privateKeyPEM: String)?
    if request.keys == nil, request.certificates.isEmpty {
      let privateKey: P256PrivateKey
      do {
        privateKey = try P256PrivateKey()
        let key = APNsAppRequest.Key(
          kid: generator.appleID(), publicKey: try privateKey.publicKey(),
          environment: request.environment)
        made = (key.kid, try privateKey.pem())
        keys = [key]
      } catch {
        throw ControlError(status: 500, code: "engine", message: "\(error)")
      }
    }
    lastApp += 1
    let number = lastApp
    apns.add(
      APNsApp(
        number: number, bundleID: request.bundleID, teamID: team,
        environment: request.environment, certificates: request.certificates))
    for key in keys {
      apns.add(
        APNsKey(
          kid: key.kid, teamID: team, app: number, publicKey: key.publicKey,
          privateKeyPEM: made.flatMap { $0.kid == key.kid ? $0.privateKeyPEM : nil },
          scope: key.scope, topics: key.topics, environment: key.environment))
    }
    revision += 1
    return (number, made)
  }

  /// Deletes an app with its keys and devices; their tokens become unknown.
  mutating func removeApp(_ number: UInt32) {
    for index in devices.indices(ofApp: number) {
      if case .apns(let handle) = devices[index].handle { apns.forget(handle) }
      for former in devices.log(of: index)?.formerHandles ?? [] {
        if case .apns(let handle) = former.handle { apns.forget(handle) }
      }
      devices[index].flags.insert(.deleted)
      devices.clearLog(of: index)
    }
    devices.removeFeed(of: number)
    apns.remove(app: number)
    revision += 1
  }

  /// What new devices shall be.
  struct APNsDeviceRequest: Sendable {
    var app: UInt32
    var kind = APNsKind.alert
    var count = 1
    var environment = APNsEnvironment.production
    /// Only with `count` 1.
    var token: APNsToken?
    var online = true
    var presence = Presence.flag
    /// Seconds until the handle expires.
    var ttl: Int64?
    var end: RegistrationEnd?
    /// With `end`: since when, in ms.
    var at: Int64?
  }

  /// - Returns: The new devices' indices.
  mutating func addDevices(_ request: APNsDeviceRequest) throws(ControlError) -> Range<Int> {
    if let token = request.token, apns.device(token, in: request.environment) != nil {
      throw .conflict("a device of the \(request.environment) environment has that token already")
    }
    let now = clock.now
    devices.reserve(request.count)
    if request.count > 1 { apns.reserve(request.count, in: request.environment) }
    let first = devices.count
    var flags: Device.Flags = request.online ? .online : []
    if request.presence == .stream { flags.insert(.followsStream) }
    for _ in 0..<request.count {
      let token = request.token ?? freshToken(in: request.environment)
      let handle = APNsHandle(token: token, environment: request.environment, kind: request.kind)
      var device = Device(app: request.app, handle: .apns(handle), flags: flags)
      if let ttl = request.ttl { device.expiresAt = now + ttl * 1000 }
      switch request.end {
      case .unregistered: device.registration = .unregistered(at: request.at ?? now)
      case .expired: device.registration = .expired(at: request.at ?? now)
      case .unknown: device.registration = .unknown
      case nil: break
      }
      apns.set(handle, device: devices.add(device))
    }
    revision += 1
    return first..<devices.count
  }
}
