import Wire

/// The addresses of a running emulator. Base URLs have no trailing slash.
package struct EmulatorAddresses: Sendable, Equatable {
  /// The URL of the control API.
  package private(set) var control = ""
  /// The authority to trust, as PEM.
  package private(set) var authorityPEM = ""
  /// The same certificate as a file, if there is one.
  package private(set) var authorityFile: String?
  /// The URL of the proxy, if there is one.
  package private(set) var proxy: String?
  private var urls: [EmulatorListener: String] = [:]
  /// Origins by service; one over HTTP/1.1 comes after that over HTTP/2.
  private var origins: [PushService: [String]] = [:]

  init() {}

  /// - Parameters:
  ///   - host: The host of the control API and the proxy, as in a URL.
  ///   - ports: The bound ports.
  ///   - isSecure: Whether services other than APNs speak TLS.
  init(
    control: String, host: String, ports: [EmulatorListener: UInt16], proxyPort: UInt16?,
    isSecure: Bool, authorityPEM: String, authorityFile: String?
  ) {
    self.control = control
    proxy = proxyPort.map { "http://\(host):\($0)" }
    self.authorityPEM = authorityPEM
    self.authorityFile = authorityFile
    for listener in EmulatorListener.all {
      guard let port = ports[listener] else { continue }
      let scheme = isSecure || listener.service == .apns ? "https" : "http"
      let url = "\(scheme)://127.0.0.1:\(port)"
      urls[listener] = url
      origins[listener.service, default: []].append(url)
    }
  }

  package subscript(listener: EmulatorListener) -> String { urls[listener] ?? "" }

  package var apnsProduction: String { self[.apnsProduction] }
  package var apnsSandbox: String { self[.apnsSandbox] }
  /// APNs' channel management.
  package var apnsChannelsProduction: String { self[.apnsChannelsProduction] }
  package var apnsChannelsSandbox: String { self[.apnsChannelsSandbox] }

  /// The URLs of all services except APNs.
  package var services: [EmulatorListener: String] { urls.filter { $0.key.service != .apns } }

  // MARK: For the services

  func origins(_ service: PushService) -> [String] { origins[service] ?? [] }

  /// The preferred origin.
  func origin(_ service: PushService) -> String { origins[service]?.first ?? "" }

  /// Whether a client that named this origin meant the service: one of its own, under any name of
  /// this machine.
  func isOwn(_ origin: String, of service: PushService) -> Bool {
    origins(service).contains { own in
      origin == own || origin == own.replacing("//127.0.0.1:", with: "//localhost:")
        || origin == own.replacing("//127.0.0.1:", with: "//[::1]:")
    }
  }

  /// For `GET /v1/info`.
  var json: JSONValue {
    let services = PushService.allCases.map { service -> JSONValue.Member in
      let urls = EmulatorListener.all.filter { $0.service == service }.map { listener in
        (name: listener.name, value: self[listener])
      }
      return .init(service.rawValue, JSONValue(urls))
    }
    var first: JSONValue = ["control": .string(control)]
    if let proxy { first = first + ["proxy": .string(proxy)] }
    return first + .object(services) + [
      "ca": .string(control + "/v1/ca.pem"), "caFile": JSONValue(authorityFile),
    ]
  }
}
