"""Chinese."""

# ruff: noqa: RUF001 - Chinese punctuation is meant.
from __future__ import annotations

import re
from datetime import date

from examples.order_assistant.planner.phrases import Phrases, alternatives

__all__ = ["CHINESE"]


def _day(day: date) -> str:
    return f"{day.year}年{day.month}月{day.day}日"


CHINESE = Phrases(
    goals=(
        ("policy", alternatives(r"退[款货]?的?(?:政策|规则|条件|规定)", r"多(?:久|长时间).*退")),
        ("compare", alternatives(r"比较|对比|相比|区别", r"哪[个款种].*[好高]", r"\bvs\b")),
        ("reviews", alternatives(r"评价|评论|口碑|评分|测评", r"好不好用?|好用吗")),
        ("refund", alternatives(r"退款|退货|退钱|退掉|退回|退了|退一下|[想要能]退|取消.*单")),
        (
            "track",
            alternatives(r"物流|快递|包裹|配送|发货|运单|追踪|到哪|在哪|哪儿了|哪里了|送到|什么时候.*到|多久.*到|到货"),
        ),
        ("history", alternatives(r"(?:所有|全部|历史|哪些|几个)的?订单|订单(?:列表|记录|历史)|我有.*订单")),
        (
            "latest",
            alternatives(
                r"(?:最近|最新|上一|最后).*(?:单|买)", r"刚刚?才?(?:下|买)", r"^(?:看看|查看|查一下|查查)?我的订单"
            ),
        ),
        (
            "order",
            alternatives(
                r"[这那该此]个?(?:订单|单)|订单(?:详情|号|内容|信息)",
                r"里面?有(?:什么|哪些|啥)|买了(?:什么|哪些|啥)|多少钱",
            ),
        ),
        ("reviews", alternatives(r"怎么样|如何$")),
        ("profile", alternatives(r"我是谁|我的(?:账户|账号|资料|信息|地址|邮箱|个人)|收货地址")),
        (
            "help",
            alternatives(
                r"帮助|能做(?:什么|些)|会(?:做)?什么|怎么用|有什么功能|可以做什么|能帮我(?:做|干)?(?:什么|些)"
            ),
        ),
        ("search", alternatives(r"有没有|有什么|有卖|想买|想要|要买|找|搜|推荐|需要|有.+吗")),
        ("bye", alternatives(r"再见|拜拜|没事了|没有了|就这样|\bbye\b")),
        ("thanks", alternatives(r"谢谢|感谢|多谢|谢了|辛苦")),
        ("greet", alternatives(r"^(?:你好|您好|嗨|哈喽|喂|早上好|下午好|晚上好|在吗|早)")),
    ),
    yes=re.compile(
        r"(?:是|好|对|嗯|行|可以|确认|确定|同意|没问题|没错|是的|好的|对的)"
        r"(?:[\s,]|的|吧|啊|了|呀|请|确认|确定|退款|退|谢谢|麻烦|你)*[.!。\s]*"
    ),
    no=alternatives(r"^(?:不|别|算了|取消|先不|先别|没必要)"),
    latest=alternatives(r"最近|最新|上一|最后|刚才|刚刚"),
    query=re.compile(
        r"(?:有没有|有什么|有卖|想要?买?|要买|找|搜索?|推荐|需要|有)(?:[一几]?[下个款些副把只台])?(?P<query>.+)"
    ),
    product_noise=alternatives(
        r"请问?|帮我|帮忙|麻烦|一下|比较|对比|相比|区别|我?想?(?:看看|看|查看|查查|查|了解|知道)|评价|评论|口碑|评分|测评",
        r"怎么样|如何|好不好用?|好用吗|哪[个款种]|更|最?[好高](?:一些|一点)?|大家|[是的吗呢呀吧?!.:\"“”]|什么|有",
    ),
    product_split=re.compile(r"\s*[,、]\s*|\s*(?:和|与|跟|还|或者?|及|同)\s*|\s+vs\s+", re.IGNORECASE),
    pronoun=re.compile(
        r"(?:它们?|他们|这个?|那个?|[这那][两些]?[个款]?|前?两[个款]|[这那]个?(?:商品|产品)|第一[个款])?"
    ),
    name_key="name_zh",
    stop="。",
    day=_day,
    say={
        "greet": "您好！我可以帮您查询订单和物流、办理退款，也可以介绍商品和买家评价。请问有什么可以帮您？",
        "help": "我可以帮您：\n"
        "- 查看最近的订单，或按订单号查询\n"
        "- 查询物流进度\n"
        "- 搜索商品，比较买家评价\n"
        "- 办理整单或部分退款（会先请您确认）\n"
        "例如：“我最近的订单到哪儿了？”或“比较极光头戴耳机和云朵无线耳塞的评价”。",
        "policy": "未发货的订单随时可以退款；运输途中的订单需签收后再申请；签收后 30 天内可申请整单或部分退款。",
        "thanks": "不客气！还有其他可以帮您的吗？",
        "bye": "再见，感谢您的光临！",
        "unknown": "抱歉，我没有理解您的意思。我可以处理订单、物流、退款、商品和评价方面的问题，"
        "例如：“我最近的订单到哪儿了？”“有没有耳机？”“订单 ORD-12345 退款”。",
        "no_tool": "抱歉，这里无法办理：当前没有可用的工具“{tool}”。",
        "which_product": "请问您指的是哪件商品？请告诉我名称，或先搜索，例如：“有没有耳机？”",
        "which_two": "请问要比较哪些商品？例如：“比较余烬电热水壶和微风多士炉的评价”。",
        "what_query": "请问您想找什么商品？例如：“有没有耳机？”",
        "profile": "您是{name}（{id}），{joined}注册。\n邮箱：{email}\n地址：{address}",
        "history": "您最近的订单：",
        "history_row": "- {number}，{placed}：{status}",
        "no_history": "您还没有下过订单。",
        "order": "订单 {number}（{placed}下单）：{status}。",
        "line": "- {name} × {quantity}：{total}",
        "paid": "实付：{paid}",
        "refunded": "已退款：{refunded}",
        "not_shipped": "订单 {number} 尚未发出，当前状态：{status}，暂无运单号。",
        "track": "订单 {number} 已于{shipped}由{carrier}发出，运单号 {tracking}。",
        "event": "- {at}，{place}：{event}",
        "expected": "预计{expected}前送达。",
        "delivered": "已于{delivered}签收。",
        "found": "为您找到：",
        "product": "- {name}，{price}（{stock}）",
        "in_stock": "有货",
        "sold_out": "缺货",
        "nothing_found": "没有找到与“{query}”相关的商品。",
        "ask_reviews": "需要看其中某件的评价，或者比较一下吗？",
        "rating": "{name}（{price}）：{average} 分（满分 5 分），共 {count} 条评价。",
        "unrated": "{name}（{price}）暂无评价。",
        "review": "- {stars} “{body}”",
        "better": "买家更喜欢{name}：{average} 分，对比 {others} 分。",
        "even": "买家对它们的评价相同：{average} 分。",
        "confirm_all": "要为订单 {number} 退款 {amount} 吗？这是该订单{left}全部金额。请回答“是”或“不”。",
        "left": "剩余的",
        "confirm_part": "要为订单 {number} 部分退款 {amount}（可退 {most}）吗？请回答“是”或“不”。",
        "too_high": "订单 {number} 最多可退 {most}。请问要退多少？",
        "other_currency": "订单 {number} 是以 {currency} 支付的。可退 {most}，请问要退多少？",
        "refund_done": "已为订单 {number} 退款 {amount}（退款单号 {refund}），款项将在 3 至 5 个工作日内到账。",
        "declined": "好的，没有办理退款。",
        "nothing_pending": "目前没有等待您确认的事项。请问需要我做什么？",
    },
    errors={
        "order_not_found": "在您的订单中没有找到 {number}。请核对订单号，格式如 ORD-12345。",
        "no_orders": "您还没有下过订单。",
        "no_customer": "您尚未登录，无法查询订单。",
        "customer_not_found": "没有找到您的账户。",
        "already_refunded": "订单 {number} 已全额退款。",
        "in_transit": "订单 {number} 正在运输途中，暂时不能退款；签收后 30 天内可以申请。",
        "too_late": "订单 {number} 签收已超过 30 天，无法退款。",
        "product_not_found": "没有找到名为“{product}”的商品。",
        "product_ambiguous": "“{product}”对应多件商品，请告诉我完整名称。",
        "empty_query": "请问您想找什么商品？例如：“有没有耳机？”",
        "not_executed": "店方没有同意，因此没有退款。",
        "other": "操作没有成功：{text}",
    },
    status={"processing": "备货中", "shipped": "运输中", "delivered": "已签收", "cancelled": "已取消"},
    event={
        "picked_up": "快递已揽收",
        "sorting_centre": "到达分拣中心",
        "customs": "清关中",
        "out_for_delivery": "派送中",
        "delivery_failed": "无人签收，将再次派送",
        "delivered": "已签收",
    },
)
