import HTTPServer

/// Broadcast channels of APNs, and who is subscribed. Channels are made as at Apple, by a request to
/// the channel management address.
extension ControlAPI {
  func addChannels(_ on: (HTTPMethod, String, @escaping Action) -> Void) {
    on(.get, "/channels") { request throws(ControlError) in
      let app = request.query("appId")
      return Self.response(
        try core.withState { state throws(ControlError) in
          let number = try app.map { id throws(ControlError) in try state.appNumber(id) }
          let list = state.channels.all.filter { number == nil || $0.place.app == number }
          return ["channels": .array(list.map(state.channelJSON))]
        })
    }
    onDevice(on, .post, "/subscribe") { state, index, request throws(ControlError) in
      try state.setSubscribed(index, true, to: Self.channelID(request))
      return state.details(of: index)
    }
    onDevice(on, .post, "/unsubscribe") { state, index, request throws(ControlError) in
      try state.setSubscribed(index, false, to: Self.channelID(request))
      return state.details(of: index)
    }
  }

  private static func channelID(_ request: ControlRequest) throws(ControlError) -> String {
    try JSONReader(try request.json(), known: ["channelId"]).required("channelId")
  }
}

extension EmulatorState {
  /// Where a device's channels are; `nil` for one that can have none.
  private func channelPlace(of index: Int) -> APNsChannel.Place? {
    guard case .apns(let handle) = devices[index].handle else { return nil }
    return .init(app: devices[index].app, environment: handle.environment)
  }

  /// The ids of the channels that a device is subscribed to; `nil` for one that can have none.
  func subscriptions(of index: Int) -> [String]? {
    channelPlace(of: index).map { place in
      channels.all(at: place).filter { $0.subscribers.contains(index) }.map(\.id)
    }
  }

  fileprivate mutating func setSubscribed(
    _ index: Int, _ isSubscribed: Bool, to id: String
  ) throws(ControlError) {
    guard let place = channelPlace(of: index) else {
      throw .conflict("only devices of apns can subscribe to a channel")
    }
    guard channels.setSubscribed(index, isSubscribed, to: id, at: place) else {
      throw .notFound(
        "channel '\(id)' of the device's app in the \(place.environment.rawValue) environment")
    }
    revision += 1
  }

  fileprivate func channelJSON(_ channel: APNsChannel) -> JSON {
    [
      "channelId": .string(channel.id), "appId": .string(Self.appID(channel.place.app)),
      "environment": .string(channel.place.environment.rawValue),
      "messageStoragePolicy": JSON(channel.policy.rawValue),
      "pushType": .string(APNsChannel.pushType), "createdAt": .int(channel.createdAt),
      "subscribers": .array(
        channel.subscribers.sorted().map { .string(Self.deviceID($0)) }),
    ]
  }
}
