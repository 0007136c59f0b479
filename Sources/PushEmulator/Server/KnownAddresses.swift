import Synchronization

/// The addresses for `GET /v1/info`, which are known only once every port is bound.
final class KnownAddresses: Sendable {
  private let addresses = Mutex<EmulatorAddresses?>(nil)

  func set(_ addresses: EmulatorAddresses) { self.addresses.withLock { $0 = addresses } }

  var json: JSON {
    guard let addresses = addresses.withLock({ $0 }) else { return .object([]) }
    let services = PushService.allCases.compactMap { service -> JSON.Member? in
      let urls = EmulatorListener.allCases.filter { $0.service == service }.map { listener in
        JSON.Member(
          name: listener.isHTTP2 ? "http2" : "http1", value: .string(addresses[listener]))
      }
      return urls.isEmpty ? nil : .init(name: service.rawValue, value: .object(urls))
    }
    let first: JSON = [
      "control": .string(addresses.control),
      "apns": [
        "production": .string(addresses.apnsProduction),
        "sandbox": .string(addresses.apnsSandbox),
        "channelsProduction": .string(addresses.apnsChannelsProduction),
        "channelsSandbox": .string(addresses.apnsChannelsSandbox),
      ],
    ]
    let last: JSON = [
      "ca": .string(addresses.control + "/v1/ca.pem"),
      "caFile": JSON(addresses.authorityFile),
    ]
    return .object((first.members ?? []) + services + (last.members ?? []))
  }
}
