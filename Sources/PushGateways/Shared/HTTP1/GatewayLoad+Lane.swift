import HTTPClient
import HubCore

extension GatewayLoad {
  /// HTTP/1.1 has a connection for each push under way. Those that are kept for later belong to
  /// nobody, and are not counted.
  init(_ lane: HTTPLane) {
    let count = lane.inFlight
    self.init(connections: count, streams: count, limit: lane.limit)
  }
}
