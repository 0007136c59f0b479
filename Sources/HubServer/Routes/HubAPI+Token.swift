import HTTPServer
import HubCore
import NotificationHubs

extension HubAPI {
  /// Lets through only who holds a token for this place, whatever its rights: only they are told
  /// what there is not (404) and what cannot be done (405) (spec `sas.md` section 6).
  ///
  /// Such a path does not say where the hub's name ends, so that every beginning of it is tried.
  func requireToken(of request: HTTPRequest) async throws(HubFailure) {
    let header = request.headers[WireName.authorization]
    let host = request.headers["Host"]
    let path = request.target.description
    var name: String?
    var refusal: HubFailure?
    for segment in request.target.pathSegments.prefix(Self.maxNameSegments) {
      guard let decoded = segment.decoded, !decoded.isEmpty else { break }
      name = name.map { $0 + "/" + decoded } ?? decoded
      do {
        _ = try await service.authorize(
          header: header, hub: name ?? "", host: host, path: path,
          publicNames: configuration.publicHosts, requiring: [])
        return
      } catch HubFailure.noHub {
        return  // The token is one of the namespace.
      } catch HubFailure.invalidSignature {
        refusal = .invalidSignature
      }
    }
    if let refusal { throw refusal }
    _ = try await service.authorizeManagement(
      header: header, hub: nil, host: host, path: path, publicNames: configuration.publicHosts,
      ofNamespace: true)
  }

  /// How many segments of a path are tried as the name of a hub.
  private static let maxNameSegments = 8
}
