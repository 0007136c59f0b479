import Synchronization

/// The addresses for `GET /v1/info`, which are known only once every port is bound.
final class KnownAddresses: Sendable {
  private let addresses = Mutex<EmulatorAddresses?>(nil)

  func set(_ addresses: EmulatorAddresses) { self.addresses.withLock { $0 = addresses } }

  var json: JSON {
    guard let addresses = addresses.withLock({ $0 }) else { return .object([]) }
    return [
      "control": .string(addresses.control),
      "apns": [
        "production": .string(addresses.apnsProduction),
        "sandbox": .string(addresses.apnsSandbox),
      ],
      "ca": .string(addresses.control + "/v1/ca.pem"),
      "caFile": JSON(addresses.authorityFile),
    ]
  }
}
