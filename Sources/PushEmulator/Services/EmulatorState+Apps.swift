/// Apps of all services.
extension EmulatorState {
  static func appID(_ number: UInt32) -> String { "app-\(number)" }

  /// The number of an app that exists.
  func appNumber(_ id: String) throws(ControlError) -> UInt32 {
    guard id.hasPrefix("app-"), let number = UInt32(id.dropFirst(4)), Self.appID(number) == id,
      apps[number] != nil
    else { throw .notFound("app '\(id)'") }
    return number
  }

  /// Takes the next app number for an app of this service.
  mutating func newApp(_ service: PushService) -> UInt32 {
    lastApp += 1
    apps[lastApp] = service
    revision += 1
    return lastApp
  }

  /// Deletes an app with its credentials and devices; their handles become unknown.
  mutating func removeApp(_ number: UInt32) {
    for index in devices.indices(ofApp: number) {
      forget(devices[index].handle)
      for former in devices.log(of: index)?.formerHandles ?? [] { forget(former.handle) }
      devices[index].flags.insert(.deleted)
      devices.clearLog(of: index)
    }
    devices.removeFeed(of: number)
    apps[number]?.desk.removeApp(number, from: &self)
    apps[number] = nil
    revision += 1
  }

  /// An app as the control API shows it.
  ///
  /// - Parameter made: What only the answer to its making tells.
  func appJSON(_ number: UInt32, made: [JSON.Member] = []) -> JSON {
    guard let service = apps[number] else { return nil }
    let first: [JSON.Member] = [
      .init(name: "appId", value: .string(Self.appID(number))),
      .init(name: "pns", value: .string(service.rawValue)),
    ]
    let devices = JSON.Member(name: "devices", value: JSON(devices.indices(ofApp: number).count))
    return .object(first + service.desk.appMembers(number, made: made, in: self) + [devices] + made)
  }
}
