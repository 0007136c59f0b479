// The declarations that the device SDK and the example use of SwiftUI, as in the iOS SDK. Nothing here does
// anything; see UIKit.swift.

@_exported import Foundation
public import UIKit

@MainActor public protocol View {
  associatedtype Body: View
  @ViewBuilder var body: Body { get }
}

extension View where Body == Never {
  public var body: Never { fatalError() }
}

extension Never: View, Scene {
  // An explicit return, which is no result builder's.
  public var body: Never { return fatalError() }
}
extension Optional: View where Wrapped: View { public typealias Body = Never }

/// Stands for every view that SwiftUI itself makes.
public struct StandInView: View {
  nonisolated public init() {}
  public typealias Body = Never
}

@resultBuilder public struct ViewBuilder {
  public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
  public static func buildBlock<each Content: View>(_ content: repeat each Content) -> some View {
    StandInView()
  }
  public static func buildOptional<Content: View>(_ content: Content?) -> Content? { content }
  public static func buildEither<Content: View>(first: Content) -> StandInView { StandInView() }
  public static func buildEither<Content: View>(second: Content) -> StandInView { StandInView() }
}

@MainActor public protocol Scene {
  associatedtype Body: Scene
  @SceneBuilder var body: Body { get }
}

extension Scene where Body == Never {
  public var body: Never { fatalError() }
}

@resultBuilder public struct SceneBuilder {
  public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}

public struct WindowGroup: Scene {
  nonisolated public init(@ViewBuilder content: () -> some View) {}
  public typealias Body = Never
}

@MainActor public protocol App {
  associatedtype Body: Scene
  @SceneBuilder var body: Body { get }
  init()
}

extension App { public static func main() {} }

@MainActor @propertyWrapper
public struct UIApplicationDelegateAdaptor<
  Delegate: NSObject & UIApplicationDelegate
> {
  public var wrappedValue: Delegate { fatalError() }
  public init(_ delegate: Delegate.Type = Delegate.self) {}
}

@propertyWrapper public struct State<Value> {
  public var wrappedValue: Value {
    get { fatalError() }
    nonmutating set {}
  }
  public var projectedValue: Binding<Value> { fatalError() }
  public init(wrappedValue: Value) {}
}

@propertyWrapper @dynamicMemberLookup public struct Binding<Value> {
  public var wrappedValue: Value {
    get { fatalError() }
    nonmutating set {}
  }
  public var projectedValue: Binding<Value> { self }
  // A property wrapper needs one.
  public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) {}
  public subscript<Member>(dynamicMember member: WritableKeyPath<Value, Member>) -> Binding<Member>
  {
    fatalError()
  }
}

// MARK: Views

public struct Text: View {
  nonisolated public init(_ text: some StringProtocol) {}
  public typealias Body = Never
}

public struct TextField: View {
  nonisolated public init(_ title: some StringProtocol, text: Binding<String>) {}
  public typealias Body = Never
}

public struct SecureField: View {
  nonisolated public init(_ title: some StringProtocol, text: Binding<String>) {}
  public typealias Body = Never
}

public struct Button: View {
  nonisolated public init(_ title: some StringProtocol, action: @escaping @MainActor () -> Void) {}
  public typealias Body = Never
}

public struct LabeledContent: View {
  nonisolated public init(_ title: some StringProtocol, value: some StringProtocol) {}
  public typealias Body = Never
}

public struct Form: View {
  nonisolated public init(@ViewBuilder content: () -> some View) {}
  public typealias Body = Never
}

public struct Section: View {
  nonisolated public init(_ title: some StringProtocol, @ViewBuilder content: () -> some View) {}
  public typealias Body = Never
}

public struct NavigationStack: View {
  nonisolated public init(@ViewBuilder root: () -> some View) {}
  public typealias Body = Never
}

public struct ForEach<Data: RandomAccessCollection, ID: Hashable>: View {
  nonisolated public init(
    _ data: Data, id: KeyPath<Data.Element, ID>,
    @ViewBuilder content: @escaping (Data.Element) -> some View
  ) {}
  public typealias Body = Never
}

public struct TextInputAutocapitalization: Sendable {
  public static var never: TextInputAutocapitalization { TextInputAutocapitalization() }
}

extension View {
  nonisolated public func task(
    _ action: @escaping @MainActor @Sendable () async -> Void
  ) -> some View { StandInView() }
  nonisolated public func navigationTitle(_ title: some StringProtocol) -> some View {
    StandInView()
  }
  nonisolated public func autocorrectionDisabled(_ disable: Bool = true) -> some View {
    StandInView()
  }
  nonisolated public func textInputAutocapitalization(
    _ capitalization: TextInputAutocapitalization?
  ) -> some View { StandInView() }
}
