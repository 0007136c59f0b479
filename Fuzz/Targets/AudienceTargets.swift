import NotificationHubs

extension FuzzTarget {
  static let tagExpression = FuzzTarget(name: "tag-expression") { bytes in
    let wide = TagExpressionLimits(alternatives: 1000, combinations: 1000)
    guard let expression = try? TagExpression(parsing: text(bytes), limits: wide) else {
      expect((try? TagExpression(parsing: text(bytes))) == nil, "narrow limits allow no more")
      return
    }
    // Parentheses are not kept, so `a && (b && c)` comes back as `(a && b) && c`.
    guard let again = try? TagExpression(parsing: expression.description, limits: wide) else {
      return expect(false, "an expression that was written can be read")
    }
    expect(again.description == expression.description, "writing an expression changes nothing")
    for sets in [Set<Tag>(), ["a"], ["b"], ["a", "b", "c"]] {
      expect(again.matches(sets) == expression.matches(sets), "it selects the same devices")
    }
  }

  static let registrationFilter = FuzzTarget(name: "filter") { bytes in
    guard let filter = try? RegistrationFilter(parsing: text(bytes)) else { return }
    expect((1...10).contains(filter.handles.count), "a filter has one to ten spellings")
    for handle in filter.handles {
      _ = filter.matches(platform: .apns, channel: .handle(handle))
      _ = filter.matches(
        platform: .browser, channel: .subscription(endpoint: handle, p256dh: "p", auth: "a"))
      let own = RegistrationFilter.text(.handle(handle))
      guard own.utf8.count <= RegistrationFilter.maximumLength else { continue }
      let again = try? RegistrationFilter(parsing: own)
      expect(again?.handles.contains(handle) == true, "the filter for a handle finds it")
    }
  }
}
